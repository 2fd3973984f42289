"""The doctor examines machine, notes, index, provider or settings. Each check gives evidence and names one fix.

- check: A check finds one state. -> Check
- checks_machine: Checks of the machine. -> CHECKS
- checks_memory: Checks of the memory. -> INDEX_CHECKS
- checks_openclaw: Checks of OpenClaw's agent. -> CHECKS
- checks_ltm: Checks of the long-term memories. -> CHECKS
- checks_qmd: Checks of QMD, step by step, each with the command that mends its fault. -> CHECKS
- runner: The doctor runs all checks side by side, each with a deadline. -> examine
"""
