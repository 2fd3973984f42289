"""View 3: the index, with the views that open over it.

- index_details: Details over the index view: doctor, storage, sessions, recalls. -> StorageView
- index_view: View 3 is the index: its status, every note that is not fresh, what happened. -> IndexView
- openclaw_index: OpenClaw's own index beside the notes on disk; it is only read. -> CompareView
- providers_view: The providers view: state, data sent, approval, test of each embedding provider. -> ProvidersView
"""
