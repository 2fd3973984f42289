"""The inbox: what in the notes needs a decision, with the change that each decision makes.

- checks: Inbox checks are one row each. -> CHECKS
- contradictions: Contradictions are two lines that give one subject two values. -> pairs
- duplicates: Duplicates are lines that the notes hold twice: equal, nearly equal, or close in meaning. -> close
- entries: An inbox entry names lines that need a decision. -> Suggestion
- examine: One list of everything the inbox checks find, most pressing first. -> examine
- findings: Findings: why the inbox suggests something, each kind with the evidence that its sentence is made of. ->
  InboxClaim
"""
