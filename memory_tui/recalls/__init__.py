"""Recalls that happened. There is the log of what agents asked, the lines people recalled, and reruns.

- line_log: A line log is a file of lines in the user's state folder, to which several processes append. -> append_line
- recall_log: The recall log keeps what agents asked of a memory, if its owner wants that. -> Log
- recalled_lines: Recalled lines say which lines were recalled. -> Marks
- rerun: A rerun asks a logged recall again: the answer then beside the answer now. -> Rerun
"""
