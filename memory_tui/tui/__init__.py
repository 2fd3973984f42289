"""The terminal app: views, panes, keys, worker jobs.

- action: An action has keys, a place where they work, a reason when it is not possible. -> Action
- action_table: The action table: what can be done at each place, which meaning of a key does it, what it needs. ->
  ACTIONS
- app: The app holds the views as modes, the theme, the command palette. -> MemoryApp
- colours: The colours of a theme, readable on every background; the terminal's own background. -> roles
- draw: Drawing without markup: safe text with style names, cut by terminal cells. -> strip
- external: External programs: the editor of the user, the clipboard. -> edit
- global_actions: Actions run here: the nearest pane's `do_` method, else an overlay, else what works in every view. ->
  GlobalActions
- home: Home is the protocol by which views know the app. -> Home
- judging: Judging hits: saved queries with their judgments, measured under the knobs. -> Evaluation
- key_meanings: Meanings of keys: one a key, the same in every view; keys.toml changes them. -> MEANINGS
- key_queue: Keys wait here: each until the key before it is done, then the app gets it. -> KeyQueue
- keymap: The keymap makes bindings, hints, help, palette out of the action table; it runs nothing. -> bindings
- navigation: Navigation is a row for each view, numbered or over another one. -> OVERLAYS
- note_changes: Changes of notes as the screen asks for them, run on a worker. -> Draft
- note_info: What is known of a note besides its text: recalls, budget, links, its changes. -> About
- note_page: A note as a page: safe lines, their layout, markup, chunk boundaries, matches. -> make_page
- signals: A signal that ends the app restores the terminal first. -> Signals
- state: The state of the engine, read once by a worker for every widget. -> Facts
- tuning: Tuning: one query, the knobs turned for it, the way back. -> Tuning
- views: The views of the app, each imported when it is first shown.
- widgets: The panes of the views.
- workers: Workers run engine calls on threads, for coroutines of the screen that wait for them. -> WorkerJobs

A key goes from app.on_event to key_queue; after `g` or `z` to GlobalActions.take_second, else to the focused widget,
then the bindings that keymap made, GlobalActions.action_do, and the `do_` method of the nearest pane, view or app.
"""
