"""Each fault that this program has to stand, and the tests that inject it; or the reason why none can.

A row names tests as `file::function`. That they exist is looked up in the source of the tests, so that renaming one
without its row fails here.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search import formulas

TESTS = Path(__file__).parent
FAULTS = 56


class Row(NamedTuple):
    """A fault, the tests that cover it, and, where there is none, why not."""

    fault: str
    tests: tuple[str, ...]
    reason: str = ""


ROWS: dict[int, Row] = {
    1: Row(
        "a process is killed at any step of indexing",
        (
            "index/test_kills.py::test_kills_at_twenty_steps_are_all_clean",
            "index/test_crash.py::test_killed_while_the_first_index_is_made",
            "index/test_crash.py::test_killed_while_notes_are_replaced",
            "index/test_kills.py::test_kills_at_two_hundred_steps_are_all_clean",
        ),
    ),
    2: Row(
        "SIGTERM, SIGINT, SIGHUP, or the terminal goes away",
        (
            "cli/test_signals.py::test_a_signal_ends_the_app_and_restores_the_terminal",
            "cli/test_signals.py::test_a_signal_ends_a_command_in_one_line",
            "mcp/test_server.py::test_signals_stop_it_at_once",
            "core/test_locks.py::test_a_killed_writer_is_succeeded_at_once",
            "mcp/test_server.py::test_a_client_that_is_gone_in_the_middle_ends_the_server",
            "providers/test_local.py::test_closing_ends_the_process_at_once",
        ),
    ),
    3: Row(
        "power is lost: database and log cut anywhere",
        ("index/test_faults.py::test_power_lost_in_the_middle_of_the_log",),
    ),
    8: Row(
        "log missing, foreign or zeroed; flipped bits; an empty file or text in place of the index",
        (
            "index/test_faults.py::test_a_log_that_is_missing_or_foreign",
            "index/test_faults.py::test_bits_that_flipped_inside_sound_pages_are_found",
            "index/test_faults.py::test_what_happened_while_it_was_closed_is_noticed_and_mended",
            "index/test_store.py::test_a_file_that_is_no_index_stays",
            "index/test_faults.py::test_one_flipped_byte_under_a_fitting_seal_is_healed",
            "index/test_store.py::test_a_damaged_index_is_moved_aside",
            "index/test_first.py::test_a_file_without_anything_in_it_is_no_index_yet",
        ),
    ),
    10: Row(
        "the index is a link, or has two names",
        (
            "index/test_faults.py::test_two_names_of_one_file_are_refused",
            "index/test_faults.py::test_a_link_leads_to_one_lock_and_one_index",
            "core/test_locks.py::test_two_names_of_one_index_share_its_lock",
        ),
    ),
    11: Row(
        "left-over files of dead and of living processes",
        (
            "index/test_faults.py::test_what_a_dead_process_left_beside_the_index_is_swept",
            "index/test_quarantine.py::test_what_is_not_surely_ours_stays",
            "demo/test_folders.py::test_the_folder_of_a_killed_demo_goes_and_that_of_a_living_one_stays",
        ),
    ),
    12: Row(
        "several apps, servers and commands on one index",
        (
            "index/test_faults.py::test_many_processes_and_nobody_hears_of_a_lock",
            "engine/test_indexer.py::test_a_second_app_reads_and_takes_over_when_the_first_ends",
            "engine/test_indexer.py::test_a_command_beside_an_open_app_writes_all_the_same",
            "mcp/test_server.py::test_servers_and_an_open_engine_share_one_index",
        ),
    ),
    13: Row(
        "the holder of a lock hangs, or its process number is used again",
        (
            "index/test_faults.py::test_a_keeper_that_hangs_is_named_and_stops_nobody",
            "core/test_locks.py::test_a_process_number_used_again_is_not_the_holder",
            "demo/test_folders.py::test_a_process_with_the_same_number_is_another_one",
        ),
    ),
    15: Row(
        "an agent appends while a note is edited or a line promoted",
        (
            "curate/test_edit.py::test_an_agent_that_appends_all_the_time_loses_no_line_and_no_edit",
            "curate/test_edit.py::test_a_writer_between_the_exchange_and_the_last_look_is_merged_in",
            "curate/test_merge.py::test_what_an_agent_appends_never_conflicts",
        ),
    ),
    16: Row(
        "saves by rename, twice within a tick of the clock, or with old size and times",
        (
            "index/test_watch.py::test_every_kind_of_save",
            "index/test_sync.py::test_two_saves_within_one_tick_of_the_clock_are_both_seen",
            "index/test_sync.py::test_a_text_that_was_put_in_with_the_old_times_is_seen",
            "index/test_freshness.py::test_a_same_size_edit_in_the_tick_of_the_last_save_is_seen",
        ),
    ),
    17: Row(
        "another process makes the index anew while this one reads",
        (
            "index/test_faults.py::test_readers_in_other_processes_follow_a_rebuild",
            "index/test_vectors.py::test_an_index_made_anew_is_noticed",
            "index/test_vectors.py::test_another_process_is_followed",
        ),
    ),
    18: Row(
        "a note is cut, deleted, renamed or replaced while it is read",
        (
            "workspace/test_notes.py::test_a_note_saved_again_since_the_scan_is_read_as_it_is_now",
            "workspace/test_notes.py::test_what_took_the_place_of_a_note_is_not_read",
            "index/test_invariants.py::test_whatever_happens_the_index_tells_the_truth",
            "index/test_sync.py::test_a_note_that_cannot_be_read_is_named_and_the_others_go_on",
        ),
    ),
    19: Row(
        "a note grows all the time",
        (
            "workspace/test_notes.py::test_a_note_that_grows_is_read_consistently_or_refused",
            "workspace/test_notes.py::test_a_note_that_is_written_to_each_time_it_is_read_is_refused",
            "index/test_watch.py::test_a_note_that_never_rests_is_announced_all_the_same",
            "index/test_freshness.py::test_a_note_that_never_rests_has_a_state_of_its_own",
        ),
    ),
    20: Row(
        "bytes that are not UTF-8, UTF-16, marks, odd line ends, NUL, odd names",
        (
            "workspace/test_notes.py::test_any_bytes_become_text",
            "index/test_sync.py::test_odd_text_is_indexed_with_a_remark",
            "index/test_sync.py::test_names_that_are_not_utf8_are_indexed",
            "curate/test_changes.py::test_bytes_that_are_not_utf8_stay_in_a_changed_line",
            "curate/test_changes.py::test_utf16_is_refused",
            "workspace/test_roots.py::test_names_that_are_not_utf8",
        ),
    ),
    21: Row(
        "huge notes, huge lines, very many headings, notes of nothing",
        (
            "workspace/test_roots.py::test_huge_files_are_left_out_unread",
            "workspace/test_chunking.py::test_one_line_of_ten_megabytes_is_cut",
            "tui/test_safety.py::test_a_line_of_ten_megabytes_is_cut_and_counted",
            "workspace/test_chunking.py::test_blank_text_has_no_chunk",
            "test_fault_table.py::test_notes_of_strange_shape_are_indexed_and_found",
            "workspace/test_chunking.py::test_repeats_that_would_fill_the_memory_are_refused",
        ),
    ),
    22: Row(
        "very many notes, deep folders, long and odd names",
        (
            "index/test_many_notes.py::test_many_notes_are_indexed_in_bounded_memory_and_then_left_alone",
            "workspace/test_roots.py::test_five_hundred_levels",
            "workspace/test_roots.py::test_any_name_is_found_and_read_back_by_its_stored_path",
            "engine/test_scanner.py::test_a_save_among_5000_notes_costs_a_handful_of_stats",
        ),
    ),
    23: Row(
        "links in a circle, out of the workspace, or to nothing; a workspace that is a link",
        (
            "workspace/test_roots.py::test_the_workspace_may_be_a_link_but_nothing_below_it",
            "workspace/test_roots.py::test_a_linked_memory_folder_is_not_followed",
            "mcp/test_tools.py::test_links_are_not_followed_wherever_they_stand",
        ),
    ),
    24: Row(
        "pipes, sockets and devices among the notes",
        (
            "workspace/test_roots.py::test_pipes_and_sockets_are_never_opened",
            "workspace/test_roots.py::test_a_folder_or_a_pipe_is_no_note",
        ),
    ),
    25: Row(
        "one note under two names; names that differ in composition only",
        (
            "workspace/test_roots.py::test_a_note_reached_twice_is_kept_once",
            "workspace/test_roots.py::test_composed_and_decomposed_names_are_two_notes",
            "workspace/test_roots.py::test_two_names_stored_alike",
        ),
    ),
    27: Row(
        "summer time, another zone, a clock that was set back",
        (
            "doctor/test_doctor.py::test_the_clock_of_a_note_from_tomorrow",
            "openclaw/test_session_note.py::test_the_hook_writes_in_the_users_time_zone_and_masks_secrets",
            "demo/test_demo.py::test_the_time_zone_changes_nothing",
            "test_fault_table.py::test_age_is_never_below_nothing_and_decay_never_above_one",
        ),
    ),
    30: Row(
        "a storm of file events",
        (
            "index/test_watch.py::test_a_burst_is_one_call",
            "index/test_watch.py::test_it_waits_for_the_quiet_time",
        ),
    ),
    31: Row(
        "paths that lead out, odd line numbers, very long or broken paths",
        (
            "mcp/test_tools.py::test_paths_outside_are_refused_with_a_code_and_without_a_look",
            "mcp/test_tools.py::test_bad_arguments_of_get_are_errors",
            "workspace/test_roots.py::test_everything_else_is_refused",
            "workspace/test_roots.py::test_no_text_leads_out",
        ),
    ),
    32: Row(
        "a path that is swapped for a link between check and use",
        (
            "mcp/test_tools.py::test_a_folder_swapped_for_a_link_while_reading_gives_nothing_away",
            "workspace/test_notes.py::test_the_memory_folder_swapped_for_a_link_is_not_followed",
            "index/test_incremental.py::test_a_folder_that_becomes_a_link_while_it_is_looked_at_is_not_followed",
        ),
    ),
    33: Row(
        "questions made of operators, quotes, wildcards, emoji, nothing, or a megabyte",
        (
            "core/test_words.py::test_no_query_breaks_full_text_search",
            "cli/test_main.py::test_any_query_is_answered",
            "tui/test_search.py::test_odd_questions_get_an_answer_or_a_reason",
            "mcp/test_tools.py::test_bad_arguments_get_a_sentence",
            "search/test_growth.py::test_a_question_that_repeats_its_words_asks_for_each_once",
            "search/test_growth.py::test_a_question_of_very_many_words_says_that_it_was_cut",
        ),
    ),
    34: Row(
        "a configuration that is broken or holds values that cannot be",
        (
            "config/test_json5.py::test_an_error_tells_line_and_column",
            "config/test_json5.py::test_numbers_beyond_all_numbers_do_no_harm",
            "config/test_load.py::test_a_bad_value_is_reported_with_its_line_and_the_default_used",
            "cli/test_main.py::test_weights_of_nothing_fall_back_to_the_documented_ones",
            "cli/test_main.py::test_a_configuration_error_tells_line_and_column",
        ),
    ),
    38: Row(
        "every way in which an embedding server fails or answers wrongly",
        (
            "providers/test_remote.py::test_every_error_has_its_state_and_only_passing_ones_are_tried_again",
            "providers/test_remote.py::test_an_answer_that_is_no_answer_is_not_kept",
            "providers/test_remote.py::test_retry_after_is_obeyed_as_seconds_and_as_a_date",
            "providers/test_remote.py::test_413_is_a_batch_that_is_too_large",
            "providers/test_remote.py::test_a_call_has_a_time_limit_in_all_and_is_not_repeated",
            "index/test_sync.py::test_a_wrong_answer_of_the_provider_is_never_stored",
            "providers/test_remote.py::test_an_answer_nested_without_end_is_an_answer_that_makes_no_sense",
            "providers/test_remote.py::test_rows_are_ordered_by_their_index",
        ),
    ),
    41: Row(
        "keys from variables, files and commands",
        (
            "config/test_secret_refs.py::test_a_command_is_never_run",
            "config/test_secret_refs.py::test_a_file_that_others_may_read_is_refused_unless_that_is_wanted",
            "providers/test_keys_hidden.py::test_no_output_log_or_file_of_ours_holds_a_key",
            "providers/test_keys_hidden.py::test_no_traceback_or_event_holds_a_key",
        ),
    ),
    42: Row(
        "control, direction, zero-width and tag characters at every output",
        (
            "tui/test_safety.py::test_no_hostile_byte_reaches_a_line_of_any_view",
            "core/test_sanitize.py::test_nothing_harmful_is_left",
            "core/test_sanitize.py::test_json_keeps_every_character_and_shows_none_that_hides",
            "cli/test_main.py::test_hostile_text_is_shown_and_obeyed_by_nobody",
            "mcp/test_tools.py::test_hostile_characters_of_a_note_are_visible_in_the_answer",
            "openclaw/test_host_index.py::test_hostile_names_in_their_index_are_shown_and_obeyed_by_nobody",
            "core/test_sanitize.py::test_what_hides_bytes_between_letters_is_made_visible",
        ),
    ),
    43: Row(
        "markup of the screen library in notes and questions",
        (
            "tui/test_safety.py::test_markup_is_shown_as_typed",
            "tui/test_safety.py::test_markup_in_a_question_is_shown_as_typed",
            "tui/test_safety.py::test_random_notes_cannot_act",
        ),
    ),
    44: Row(
        "Markdown that is nested, wide or full of links to load",
        (
            "test_fault_table.py::test_notes_of_strange_shape_are_indexed_and_found",
            "curate/test_links.py::test_any_text_is_searched",
            "curate/test_changes.py::test_headings_in_code_do_not_count",
            "tui/test_safety.py::test_random_notes_cannot_act",
        ),
    ),
    45: Row(
        "a note tells the agent what to do",
        (
            "mcp/test_tools.py::test_a_note_that_gives_orders_is_quoted_as_data_and_changes_no_tool",
            "mcp/test_tools.py::test_hostile_characters_of_a_note_are_visible_in_the_answer",
        ),
    ),
    46: Row(
        "secrets in notes",
        (
            "core/test_secret_finder.py::test_keys_in_the_documented_shape_of_a_service_are_found_wherever_they_stand",
            "core/test_secret_finder.py::test_passwords_are_found_however_they_are_labelled",
            "core/test_secret_finder.py::test_notes_of_the_shared_logs_hold_no_secret",
            "engine/test_sending.py::test_a_secret_is_not_sent_and_stays_findable_by_its_words",
            "engine/test_sending.py::test_a_question_that_holds_a_secret_is_not_sent_and_answered_by_its_words",
            "recalls/test_recall_log.py::test_secrets_are_masked_wherever_they_stand",
            "index/test_transcripts.py::test_no_secret_is_stored",
        ),
    ),
    47: Row(
        "a configuration that names another host or places outside",
        (
            "test_approval.py::test_a_configured_provider_gets_nothing_and_words_are_searched",
            "test_approval.py::test_a_key_alone_sends_nothing_and_meaning_is_there_from_the_first_start",
            "test_approval.py::test_the_key_of_one_provider_is_not_offered_to_the_next",
            "test_approval.py::test_an_agreement_is_for_one_workspace_provider_and_host",
            "providers/test_remote.py::test_redirects_are_not_followed",
            "config/test_config_write.py::test_what_may_not_be_included_is_reported_and_the_rest_counts",
        ),
    ),
    48: Row(
        "files that others can read",
        (
            "index/test_store.py::test_an_index_is_private_to_its_user",
            "index/test_store.py::test_a_lax_index_file_is_made_private",
            "index/test_faults.py::test_nothing_that_lies_about_is_lax",
            "curate/test_edit.py::test_mode_is_kept_and_the_journal_is_private",
            "recalls/test_recalled_lines.py::test_only_its_owner_may_read_it",
            "recalls/test_recall_log.py::test_only_its_owner_may_read_it",
            "test_approval.py::test_nobody_else_can_read_it",
        ),
    ),
    49: Row(
        "MCP: broken or huge messages, noise, end of input, a hundred calls, cancelled ones",
        (
            "mcp/test_server.py::test_a_line_that_is_no_request_is_answered_and_the_next_one_too",
            "mcp/test_server.py::test_half_a_character_is_replaced_and_the_request_is_answered_under_its_id",
            "mcp/test_server.py::test_ids_of_every_kind_come_back_as_they_were",
            "mcp/test_server.py::test_a_line_of_many_megabytes_is_answered",
            "mcp/test_server.py::test_a_batch_is_answered_where_the_protocol_knows_batches_and_each_request_refused_elsewhere",
            "mcp/test_server.py::test_what_is_printed_by_accident_does_not_reach_the_protocol",
            "mcp/test_server.py::test_the_server_ends_with_its_input_and_leaves_nobody_behind",
            "mcp/test_server.py::test_a_hundred_calls_at_once_are_all_answered_each_with_its_own",
            "mcp/test_server.py::test_a_cancelled_question_is_given_up_and_others_are_answered",
        ),
    ),
    4: Row("memory runs out", ("core/test_durable_machine.py::test_too_little_memory_is_said_and_damages_nothing",)),
    5: Row(
        "killed between a change and its journal",
        (
            "cli/test_durable_commands.py::test_a_command_under_faults",
            "core/test_durable.py::test_a_change_outlives_the_power",
        ),
    ),
    6: Row(
        "a disk is full: notes, index or journal",
        (
            "core/test_durable.py::test_a_full_disk_leaves_no_part_of_a_text",
            "core/test_durable_machine.py::test_a_limit_on_the_size_of_files_leaves_no_part_of_a_text",
            "index/test_disk_full.py::test_what_is_indexed_answers_when_nothing_can_be_written",
            "index/test_disk_full.py::test_without_an_index_one_is_kept_elsewhere_for_the_time_being",
        ),
    ),
    7: Row(
        "notes, index or home cannot be written",
        (
            "core/test_durable_machine.py::test_notes_on_a_read_only_disk_are_searched_and_not_changed",
            "core/test_durable_machine.py::test_an_index_on_a_read_only_disk_is_kept_elsewhere_and_that_is_said",
            "core/test_durable_machine.py::test_without_a_home_notes_are_searched_and_changes_say_what_is_missing",
        ),
    ),
    9: Row(
        "a file system that other machines share",
        (
            "index/test_faults.py::test_the_nearest_mount_tells_the_kind",
            "index/test_faults.py::test_a_reader_follows_an_index_that_leaves_the_lower_layer",
        ),
    ),
    14: Row(
        "OpenClaw's database is locked, migrating or unknown",
        (
            "openclaw/test_host_index.py::test_an_index_that_is_being_migrated_is_read_as_it_was_or_named",
            "openclaw/test_host_index.py::test_columns_that_are_new_to_us_are_passed_over",
            "openclaw/test_host_index.py::test_a_locked_index_is_told_soon",
        ),
    ),
    26: Row(
        "dates that cannot be, in file names",
        (
            "engine/test_odd_dates.py::test_impossible_dates_are_evergreen_and_future_ones_get_no_boost",
            "engine/test_odd_dates.py::test_each_date_that_cannot_be_is_pointed_out",
        ),
    ),
    28: Row(
        "a file or folder may not be read",
        (
            "core/test_durable_machine.py::test_what_may_not_be_read_is_named",
            "workspace/test_root_state.py::test_a_workspace_that_may_not_be_read",
        ),
    ),
    29: Row(
        "no handles, lost events, an unmounted root",
        (
            "index/test_watch.py::test_a_process_without_handles_lists_instead_and_says_so",
            "workspace/test_root_state.py::test_the_death_of_the_watcher_is_told_and_it_is_begun_anew",
            "workspace/test_root_state.py::test_a_watcher_that_hangs_is_told",
            "workspace/test_root_state.py::test_an_unmounted_workspace_keeps_its_few_notes",
        ),
    ),
    35: Row(
        "sqlite-vec is missing, broken or another version",
        ("search/test_fallbacks.py::test_whatever_sqlite_vec_is_the_answers_are_the_same",),
    ),
    36: Row(
        "no full-text search, no trigrams",
        ("search/test_fallbacks.py::test_an_sqlite_without_full_text_search_or_trigrams_is_told",),
    ),
    37: Row(
        "another model, size or norm of vectors",
        (
            "search/test_fallbacks.py::test_vectors_of_another_model_are_off_until_the_index_is_made_again",
            "index/test_vectors.py::test_more_neighbours_than_vec0_finds_at_once",
        ),
    ),
    39: Row(
        "offline at the first start, a proxy, a broken download",
        (
            "providers/test_network.py::test_offline_at_the_first_start_words_answer_and_meaning_follows",
            "providers/test_network.py::test_a_proxy_that_wants_a_login_or_is_not_there_is_named",
            "providers/test_network.py::test_a_certificate_that_nobody_trusts_gets_no_note",
            "providers/test_network.py::test_a_model_that_breaks_off_leaves_words_and_goes_on_where_it_was",
        ),
    ),
    40: Row(
        "the fallback at indexing and at asking",
        (
            "providers/test_network.py::test_a_provider_that_fails_half_way_leaves_no_vector_among_the_fallbacks",
            "providers/test_network.py::test_a_question_is_never_compared_with_vectors_of_another",
        ),
    ),
    51: Row(
        "tiny, dumb, colourless terminals and pipes",
        (
            "tui/test_odd_terminals.py::test_a_tiny_terminal_says_so_and_a_larger_one_works",
            "tui/test_odd_terminals.py::test_a_storm_of_resizes_is_survived",
            "tui/test_odd_terminals.py::test_the_app_is_usable_or_says_why_not",
            "tui/test_odd_terminals.py::test_a_pipe_gets_utf_8_without_escapes",
        ),
    ),
    52: Row(
        "wide and combined characters in columns",
        ("tui/test_odd_terminals.py::test_columns_stay_aligned_beside_wide_and_combining_glyphs",),
    ),
    53: Row(
        "an editor that is missing, fails or races",
        (
            "curate/test_outside.py::test_an_editor_that_is_missing_or_fails_changes_nothing_and_says_so",
            "curate/test_outside.py::test_a_note_that_changes_while_the_editor_has_it_is_told_on_screen",
        ),
    ),
    54: Row(
        "undo after others changed the note, twice, after a restart",
        (
            "curate/test_edit.py::test_undo_after_others_changed_the_same_lines_and_twice_and_after_a_restart",
            "tui/test_curate.py::test_changes_that_do_not_touch_are_both_kept",
        ),
    ),
    55: Row(
        "most of the index vanishes without deletions",
        (
            "index/test_mass_deletion.py::test_a_new_index_that_lacks_more_than_half_of_what_is_on_disk_is_not_published",
        ),
    ),
    56: Row(
        "the state database is cut, foreign, killed while it is written, on a full disk, changed by two at once",
        (
            "core/test_state_db.py::test_a_broken_database_is_set_aside_with_a_notice_and_a_new_one_begun",
            "core/test_state_db.py::test_two_processes_that_find_it_broken_set_it_aside_once",
            "core/test_state_db.py::test_a_killed_process_loses_nothing_it_had_finished",
            "core/test_state_db.py::test_a_full_disk_costs_nothing_that_was_there",
            "core/test_state_db.py::test_processes_at_once_lose_nothing_of_each_other",
        ),
    ),
}

REASONS: dict[int, Row] = {
    50: Row(
        "a web page asks the server from a foreign origin",
        (),
        "There is no HTTP transport: the server speaks over its pipes alone.",
    ),
}


@cache
def functions(name: str) -> frozenset[str]:
    """The test functions of a file."""
    tree = ast.parse((TESTS / name).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds) and node.name.startswith("test_"))


def test_every_fault_has_its_row_once() -> None:
    numbers = [*ROWS, *REASONS]
    assert sorted(numbers) == list(range(1, FAULTS + 1))
    assert all(row.tests for row in ROWS.values())
    assert all(row.reason and not row.tests for row in REASONS.values())
    rows = [*ROWS.values(), *REASONS.values()]
    assert len({row.fault for row in rows}) == FAULTS


@pytest.mark.parametrize("number", sorted(ROWS))
def test_the_tests_of_a_row_exist(number: int) -> None:
    for named in ROWS[number].tests:
        name, _, function = named.partition("::")
        assert function in functions(name), named


def test_notes_of_strange_shape_are_indexed_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    shapes = {
        "lists": "".join(f"{' ' * (depth % 400)}- item {depth}\n" for depth in range(10_000)),
        "quotes": "".join(f"{'>' * (depth % 200)} quote {depth}\n" for depth in range(5_000)),
        "headings": "".join(f"{'#' * (1 + number % 6)} part {number}\n" for number in range(20_000)),
        "table": "|" + " cell |" * 5_000 + "\n" + "|---" * 5_000 + "|\n",
        "links": "![x](https://127.0.0.1:1/a.png) <img src='https://127.0.0.1:1/b'> [[memory/lists]]\n" * 500,
        "brackets": "[" * 20_000 + "](" * 20_000,
        "empty": "",
        "blank": " \n\t\n" * 1_000,
    }
    for name, text in shapes.items():
        (folder / "memory" / f"{name}.md").write_text(text + ("zebrafish\n" if text.strip() else ""))
    options = Options(
        workspace=str(folder),
        index=str(tmp_path / "i.sqlite"),
        provider="scripted",
        changes=(("sync.watch", "false"), ("query.minScore", "0"), ("query.maxResults", "50")),
    )
    with Engine.open(options) as engine:
        report = engine.indexer.sync()
        assert report.indexed == len(shapes)
        found = {hit.chunk.path for hit in engine.queries.search("zebrafish").recalled}
    assert found == {f"memory/{name}.md" for name, text in shapes.items() if text.strip()}


@given(st.floats(-1e6, 1e6), st.floats(0.1, 1e5))
def test_age_is_never_below_nothing_and_decay_never_above_one(days: float, half_life: float) -> None:
    """Whatever the clock says: a note from tomorrow is as old as one of today."""
    factor = float(formulas.decay_factor(np.array([days]), half_life)[0])
    assert 0 <= factor <= 1
    assert days > 0 or factor == 1
