"""The views of the app, each imported when it is first shown.

- agents: View 6: the agent programs, with the difference that connects one.
- dialogs: Dialogs over a view: a question, a line to type, a list to pick from, a preview. -> LineDialog
- help: Help shows the keys of the focused pane, the signs on this screen. -> Help
- inbox: View 4: the inbox.
- index: View 3: the index, with the views that open over it.
- map: View 5: the map of the memory.
- notes: View 1: the notes, with the views that change them.
- proposals: Proposals are changes of notes that a view shows first, makes as one, takes back as one. -> Proposals
- search: View 2: the search, with the views that explain, judge, tune.
- view: A view has a truth bar above, key hints below, a name for where the user is. -> View
"""
