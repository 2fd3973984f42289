"""View 3: the index, with the views that open over it.

- doctor_view: The doctor view shows what each check finds. -> DoctorView
- index_view: View 3 is the index. -> IndexView
- listing: A listing is what a worker thread gathered, as rows. -> Listing
- memories_view: The memories view lists long-term memories in LanceDB. -> MemoriesView
- openclaw_index: OpenClaw's own index beside the notes on disk; it is only read. -> CompareView
- providers_view: The providers view lists the embedding providers. -> ProvidersView
- recalls_view: The recalls view lists what agents asked. -> RecallsView
- sessions_view: The sessions view shows how close each session is to its memory flush. -> SessionsView
- storage_view: The storage view shows what the index takes on disk. -> StorageView
"""
