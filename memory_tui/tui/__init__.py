"""The terminal app. It has views, panes, keys and worker jobs.

A key goes from app.on_event to key_queue; after `g` or `z` to GlobalActions.take_second, else to the focused widget,
then the bindings that keymap made, GlobalActions.action_do, and the `do_` method of the nearest pane, view or app.
"""
