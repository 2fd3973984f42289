"""The terminal app. It has views, panes, keys and worker jobs.

- action: An action is what keys do at a place. -> Action
- action_table: The action table lists what can be done at each place. -> ACTIONS
- app: The app holds the views as modes. -> MemoryApp
- colours: The colours of a theme are readable on every background. -> roles
- draw: Drawing without markup: safe text with style names, cut by terminal cells. -> strip
- external: What leaves the app: a note for the user's editor, text for the clipboard, an answer for a file. -> edit
- global_actions: Actions run here: the nearest pane's `do_` method, else an overlay, else what works in every view. ->
  GlobalActions
- home: Home is the protocol by which views know the app. -> Home
- judging: Judging hits: saved queries with their judgments, measured under the knobs. -> Evaluation
- key_meanings: Meanings of keys: one a key, the same in every view; keys.toml changes them. -> MEANINGS
- key_queue: Keys wait here: each until the key before it is done, then the app gets it. -> KeyQueue
- keymap: The keymap is made of the action table; it runs nothing. -> bindings
- navigation: Navigation is a row for each view, numbered or over another one. -> OVERLAYS
- note_changes: Changes of notes as the screen asks for them, run on a worker. -> Draft
- note_info: What is known of a note besides its text. -> About
- note_page: A note as a page of safe lines. -> make_page
- signals: A signal that ends the app restores the terminal first. -> Signals
- state: The state of the engine, read once by a worker for every widget. -> Facts
- tuning: Tuning is one query with the knobs turned for it. -> Tuning
- views: The views of the app, each imported when it is first shown.
- widgets: The panes of the views.
- workers: Workers run engine calls on threads, for coroutines of the screen that wait for them. -> WorkerJobs

A key goes from app.on_event to key_queue; after `g` or `z` to GlobalActions.take_second, else to the focused widget,
then the bindings that keymap made, GlobalActions.action_do, and the `do_` method of the nearest pane, view or app.
"""
