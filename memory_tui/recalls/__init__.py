"""Recalls that happened: the log of what agents asked, the lines people recalled, reruns.

- activity: Activity: how often each note was recalled, day by day, as far as the records of recalls go back.
  -> Activity
- recall_log: The recall log keeps what agents asked of a memory, if its owner wants that. -> Log
- recalled_lines: Recalled lines: which lines were recalled, when, how an answer cites them. -> Marks
- rerun: A rerun asks a logged recall again: the answer then beside the answer now. -> Rerun
"""
