"""The views of the app, each imported when it is first shown.

- agents: View 6: the agent programs, with the difference that connects one.
- dialogs: Dialogs over a view. -> LineDialog
- help: Help shows the keys of the focused pane. -> Help
- inbox: View 4: the inbox.
- index: View 3: the index, with the views that open over it.
- map: View 5: the map of the memory.
- notes: View 1: the notes, with the views that change them.
- proposals: Proposals are changes of notes that a view shows first, makes as one, takes back as one. -> Proposals
- search: View 2: the search, with the views that explain, judge, tune.
- view: A view is a screen with a truth bar above. -> View
"""
