"""Dates: the time that a question speaks of.

- day_spans: Spans of days, counted from today. -> week
- kinds: The words and figures of a question as kinds, one letter each. -> lines_of
- question_dates: The time that a question speaks of: a day, a week, a month or any span. -> time_in
- time_words: The words that name times, by language, as time_words.txt has them. -> lexicons
"""
