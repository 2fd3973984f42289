"""The doctor examines machine, notes, index, provider or settings. Each check gives evidence and names one fix."""
