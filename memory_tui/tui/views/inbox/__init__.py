"""View 4: the inbox.

- dreaming_view: The dreaming view lists what OpenClaw promotes. -> DreamingView
- inbox_actions: The part of the inbox that acts on a suggestion, or undoes what it did. -> InboxActions
- inbox_count: The count of the inbox is made while the app is left alone, so that its tab has a number before anybody
  opens it. -> InboxCount
- inbox_proposal: A proposal of the inbox in words. -> Shown
- inbox_view: View 4 is the inbox: every step is shown first or undone by a key. -> InboxView
"""
