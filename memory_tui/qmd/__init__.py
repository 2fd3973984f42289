"""The program QMD, which answers in the place of the built-in index where a person chose that.

- answer: An answer of QMD is read strictly: each row is checked before anybody sees it. -> hits
- client: The client asks QMD a question after it has seen that QMD can answer it. -> QmdClient
- folder: The folder of one agent's QMD. -> QmdFolder
- index: QMD's index is read beside the files on disk; it is never written here. -> read
- models: QMD's models are checked on disk before QMD runs. -> models
- options: Options are what a configuration says of QMD. -> QmdOptions
- program: The program QMD runs with hard limits. -> find
- question: A question is taken apart as QMD takes it apart. -> terms
- reasons: Reasons say why QMD's answer lacks a line. -> why
- remarks: Remarks are what a person should know of one answer of QMD. -> QmdRemark
- side_by_side: Two answers side by side are matched by the lines they share. -> matched
- upkeep: Upkeep runs one process of QMD at a time. -> Upkeep
"""
