"""Other memories beside the index: the program QMD, and OpenClaw's long-term memories in LanceDB."""
