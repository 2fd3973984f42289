"""View 3: the index, with the views that open over it.

- doctor_view: The doctor view examines machine, notes, index, provider, settings. -> DoctorView
- index_view: View 3 is the index: its status, every note that is not fresh, what happened. -> IndexView
- listing: A listing is what a worker thread gathered, as rows. -> Listing
- memories_view: Long-term memories in LanceDB: a list, a search with reasons, pairs that repeat each other.
  -> MemoriesView
- openclaw_index: OpenClaw's own index beside the notes on disk; it is only read. -> CompareView
- providers_view: The providers view: state, data sent, approval, test of each embedding provider. -> ProvidersView
- recalls_view: The recalls view lists what agents asked. -> RecallsView
- sessions_view: The sessions view shows how close each session is to its memory flush. -> SessionsView
- storage_view: The storage view shows tables, files, writers of the index, the cost of a rebuild. -> StorageView
"""
