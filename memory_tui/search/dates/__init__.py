"""Dates: the time that a question speaks of.

- day_spans: Spans of days, counted from today. -> week
- question_dates: The time that a question speaks of: a day, a week, a month or any span. -> time_in
"""
