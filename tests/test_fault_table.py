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
FAULTS = 55


class Row(NamedTuple):
    """A fault, the tests that cover it, and, where there is none, why not."""

    fault: str
    tests: tuple[str, ...]
    reason: str = ""


ROWS: dict[int, Row] = {
    1: Row(
        "a process is killed at any step of indexing",
        (
            "test_index_kills.py::test_kills_at_twenty_steps_are_all_clean",
            "test_index_crash.py::test_killed_while_the_first_index_is_made",
            "test_index_crash.py::test_killed_while_notes_are_replaced",
            "test_index_kills.py::test_kills_at_two_hundred_steps_are_all_clean",
        ),
    ),
    2: Row(
        "SIGTERM, SIGINT, SIGHUP, or the terminal goes away",
        (
            "test_signals.py::test_a_signal_ends_the_app_and_restores_the_terminal",
            "test_signals.py::test_a_signal_ends_a_command_in_one_line",
            "test_agent_mcp.py::test_signals_stop_it_at_once",
            "test_index_lock.py::test_a_killed_writer_is_succeeded_at_once",
            "test_agent_mcp.py::test_a_client_that_is_gone_in_the_middle_ends_the_server",
            "test_embed_local.py::test_closing_ends_the_process_at_once",
        ),
    ),
    3: Row(
        "power is lost: database and log cut anywhere",
        ("test_index_faults.py::test_power_lost_in_the_middle_of_the_log",),
    ),
    8: Row(
        "log missing, foreign or zeroed; flipped bits; an empty file or text in place of the index",
        (
            "test_index_faults.py::test_a_log_that_is_missing_or_foreign",
            "test_index_faults.py::test_bits_that_flipped_inside_sound_pages_are_found",
            "test_index_faults.py::test_what_happened_while_it_was_closed_is_noticed_and_mended",
            "test_index_store.py::test_a_file_that_is_no_index_stays",
            "test_index_faults.py::test_one_flipped_byte_under_a_fitting_seal_is_healed",
            "test_index_store.py::test_a_damaged_index_is_moved_aside",
            "test_index_first.py::test_a_file_without_anything_in_it_is_no_index_yet",
        ),
    ),
    10: Row(
        "the index is a link, or has two names",
        (
            "test_index_faults.py::test_two_names_of_one_file_are_refused",
            "test_index_faults.py::test_a_link_leads_to_one_lock_and_one_index",
            "test_index_lock.py::test_two_names_of_one_index_share_its_lock",
        ),
    ),
    11: Row(
        "left-over files of dead and of living processes",
        (
            "test_index_faults.py::test_what_a_dead_process_left_beside_the_index_is_swept",
            "test_index_aside.py::test_what_is_not_surely_ours_stays",
            "test_demo_folders.py::test_the_folder_of_a_killed_demo_goes_and_that_of_a_living_one_stays",
        ),
    ),
    12: Row(
        "several apps, servers and commands on one index",
        (
            "test_index_faults.py::test_many_processes_and_nobody_hears_of_a_lock",
            "test_engine_upkeep.py::test_a_second_app_reads_and_takes_over_when_the_first_ends",
            "test_engine_upkeep.py::test_a_command_beside_an_open_app_writes_all_the_same",
            "test_agent_mcp.py::test_servers_and_an_open_engine_share_one_index",
        ),
    ),
    13: Row(
        "the holder of a lock hangs, or its process number is used again",
        (
            "test_index_faults.py::test_a_keeper_that_hangs_is_named_and_stops_nobody",
            "test_index_lock.py::test_a_process_number_used_again_is_not_the_holder",
            "test_demo_folders.py::test_a_process_with_the_same_number_is_another_one",
        ),
    ),
    15: Row(
        "an agent appends while a note is edited or a line promoted",
        (
            "test_curate_edit.py::test_an_agent_that_appends_all_the_time_loses_no_line_and_no_edit",
            "test_curate_edit.py::test_a_writer_between_the_exchange_and_the_last_look_is_merged_in",
            "test_curate_merge.py::test_what_an_agent_appends_never_conflicts",
        ),
    ),
    16: Row(
        "saves by rename, twice within a tick of the clock, or with old size and times",
        (
            "test_index_watch.py::test_every_kind_of_save",
            "test_index_sync.py::test_two_saves_within_one_tick_of_the_clock_are_both_seen",
            "test_index_sync.py::test_a_text_that_was_put_in_with_the_old_times_is_seen",
            "test_index_freshness.py::test_a_same_size_edit_in_the_tick_of_the_last_save_is_seen",
        ),
    ),
    17: Row(
        "another process makes the index anew while this one reads",
        (
            "test_index_faults.py::test_readers_in_other_processes_follow_a_rebuild",
            "test_index_vectors.py::test_an_index_made_anew_is_noticed",
            "test_index_vectors.py::test_another_process_is_followed",
        ),
    ),
    18: Row(
        "a note is cut, deleted, renamed or replaced while it is read",
        (
            "test_workspace_document.py::test_a_note_saved_again_since_the_scan_is_read_as_it_is_now",
            "test_workspace_document.py::test_what_took_the_place_of_a_note_is_not_read",
            "test_index_invariants.py::test_whatever_happens_the_index_tells_the_truth",
            "test_index_sync.py::test_a_note_that_cannot_be_read_is_named_and_the_others_go_on",
        ),
    ),
    19: Row(
        "a note grows all the time",
        (
            "test_workspace_document.py::test_a_note_that_grows_is_read_consistently_or_refused",
            "test_workspace_document.py::test_a_note_that_is_written_to_each_time_it_is_read_is_refused",
            "test_index_watch.py::test_a_note_that_never_rests_is_announced_all_the_same",
            "test_index_freshness.py::test_a_note_that_never_rests_has_a_state_of_its_own",
        ),
    ),
    20: Row(
        "bytes that are not UTF-8, UTF-16, marks, odd line ends, NUL, odd names",
        (
            "test_workspace_document.py::test_any_bytes_become_text",
            "test_index_sync.py::test_odd_text_is_indexed_with_a_remark",
            "test_index_sync.py::test_names_that_are_not_utf8_are_indexed",
            "test_curate_changes.py::test_bytes_that_are_not_utf8_stay_in_a_changed_line",
            "test_curate_changes.py::test_utf16_is_refused",
            "test_workspace_roots.py::test_names_that_are_not_utf8",
        ),
    ),
    21: Row(
        "huge notes, huge lines, very many headings, notes of nothing",
        (
            "test_workspace_roots.py::test_huge_files_are_left_out_unread",
            "test_workspace_chunks.py::test_one_line_of_ten_megabytes_is_cut",
            "test_tui_safety.py::test_a_line_of_ten_megabytes_is_cut_and_counted",
            "test_workspace_chunks.py::test_blank_text_has_no_chunk",
            "test_fault_table.py::test_notes_of_strange_shape_are_indexed_and_found",
            "test_workspace_chunks.py::test_repeats_that_would_fill_the_memory_are_refused",
        ),
    ),
    22: Row(
        "very many notes, deep folders, long and odd names",
        (
            "test_index_many.py::test_many_notes_are_indexed_in_bounded_memory_and_then_left_alone",
            "test_workspace_roots.py::test_five_hundred_levels",
            "test_workspace_roots.py::test_any_name_is_found_and_read_back_by_its_stored_path",
            "test_engine_looks.py::test_a_save_among_5000_notes_costs_a_handful_of_stats",
        ),
    ),
    23: Row(
        "links in a circle, out of the workspace, or to nothing; a workspace that is a link",
        (
            "test_workspace_roots.py::test_the_workspace_may_be_a_link_but_nothing_below_it",
            "test_workspace_roots.py::test_a_linked_memory_folder_is_not_followed",
            "test_agent_tools.py::test_links_are_not_followed_wherever_they_stand",
        ),
    ),
    24: Row(
        "pipes, sockets and devices among the notes",
        (
            "test_workspace_roots.py::test_pipes_and_sockets_are_never_opened",
            "test_workspace_roots.py::test_a_folder_or_a_pipe_is_no_note",
        ),
    ),
    25: Row(
        "one note under two names; names that differ in composition only",
        (
            "test_workspace_roots.py::test_a_note_reached_twice_is_kept_once",
            "test_workspace_roots.py::test_composed_and_decomposed_names_are_two_notes",
            "test_workspace_roots.py::test_two_names_stored_alike",
        ),
    ),
    27: Row(
        "summer time, another zone, a clock that was set back",
        (
            "test_doctor.py::test_the_clock_of_a_note_from_tomorrow",
            "test_agent_hooks.py::test_the_hook_writes_in_the_users_time_zone_and_masks_secrets",
            "test_demo.py::test_the_time_zone_changes_nothing",
            "test_fault_table.py::test_age_is_never_below_nothing_and_decay_never_above_one",
        ),
    ),
    30: Row(
        "a storm of file events",
        (
            "test_index_watch.py::test_a_burst_is_one_call",
            "test_index_watch.py::test_it_waits_for_the_quiet_time",
        ),
    ),
    31: Row(
        "paths that lead out, odd line numbers, very long or broken paths",
        (
            "test_agent_tools.py::test_paths_outside_are_refused_with_a_code_and_without_a_look",
            "test_agent_tools.py::test_bad_arguments_of_get_are_errors",
            "test_workspace_roots.py::test_everything_else_is_refused",
            "test_workspace_roots.py::test_no_text_leads_out",
        ),
    ),
    32: Row(
        "a path that is swapped for a link between check and use",
        (
            "test_agent_tools.py::test_a_folder_swapped_for_a_link_while_reading_gives_nothing_away",
            "test_workspace_document.py::test_the_memory_folder_swapped_for_a_link_is_not_followed",
            "test_index_looks.py::test_a_folder_that_becomes_a_link_while_it_is_looked_at_is_not_followed",
        ),
    ),
    33: Row(
        "questions made of operators, quotes, wildcards, emoji, nothing, or a megabyte",
        (
            "test_text_words.py::test_no_query_breaks_full_text_search",
            "test_cli.py::test_any_query_is_answered",
            "test_tui_search.py::test_odd_questions_get_an_answer_or_a_reason",
            "test_agent_tools.py::test_bad_arguments_get_a_sentence",
            "test_search_growth.py::test_a_question_that_repeats_its_words_asks_for_each_once",
            "test_search_growth.py::test_a_question_of_very_many_words_says_that_it_was_cut",
        ),
    ),
    34: Row(
        "a configuration that is broken or holds values that cannot be",
        (
            "test_config_tree.py::test_an_error_tells_line_and_column",
            "test_config_tree.py::test_numbers_beyond_all_numbers_do_no_harm",
            "test_config_reading.py::test_a_bad_value_is_reported_with_its_line_and_the_default_used",
            "test_cli.py::test_weights_of_nothing_fall_back_to_the_documented_ones",
            "test_cli.py::test_a_configuration_error_tells_line_and_column",
        ),
    ),
    38: Row(
        "every way in which an embedding server fails or answers wrongly",
        (
            "test_embed_remote.py::test_every_error_has_its_state_and_only_passing_ones_are_tried_again",
            "test_embed_remote.py::test_an_answer_that_is_no_answer_is_not_kept",
            "test_embed_remote.py::test_retry_after_is_obeyed_as_seconds_and_as_a_date",
            "test_embed_remote.py::test_413_is_a_batch_that_is_too_large",
            "test_embed_remote.py::test_a_call_has_a_time_limit_in_all_and_is_not_repeated",
            "test_index_sync.py::test_a_wrong_answer_of_the_provider_is_never_stored",
            "test_embed_remote.py::test_an_answer_nested_without_end_is_an_answer_that_makes_no_sense",
            "test_embed_remote.py::test_rows_are_ordered_by_their_index",
        ),
    ),
    41: Row(
        "keys from variables, files and commands",
        (
            "test_config_secrets.py::test_a_command_is_never_run",
            "test_config_secrets.py::test_a_file_that_others_may_read_is_refused_unless_that_is_wanted",
            "test_keys_hidden.py::test_no_output_log_or_file_of_ours_holds_a_key",
            "test_keys_hidden.py::test_no_traceback_or_event_holds_a_key",
        ),
    ),
    42: Row(
        "control, direction, zero-width and tag characters at every output",
        (
            "test_tui_safety.py::test_no_hostile_byte_reaches_a_line_of_any_view",
            "test_text_display.py::test_nothing_harmful_is_left",
            "test_text_display.py::test_json_keeps_every_character_and_shows_none_that_hides",
            "test_cli.py::test_hostile_text_is_shown_and_obeyed_by_nobody",
            "test_agent_tools.py::test_hostile_characters_of_a_note_are_visible_in_the_answer",
            "test_index_theirs.py::test_hostile_names_in_their_index_are_shown_and_obeyed_by_nobody",
            "test_text_display.py::test_what_hides_bytes_between_letters_is_made_visible",
        ),
    ),
    43: Row(
        "markup of the screen library in notes and questions",
        (
            "test_tui_safety.py::test_markup_is_shown_as_typed",
            "test_tui_safety.py::test_markup_in_a_question_is_shown_as_typed",
            "test_tui_safety.py::test_random_notes_cannot_act",
        ),
    ),
    44: Row(
        "Markdown that is nested, wide or full of links to load",
        (
            "test_fault_table.py::test_notes_of_strange_shape_are_indexed_and_found",
            "test_curate_links.py::test_any_text_is_searched",
            "test_curate_changes.py::test_headings_in_code_do_not_count",
            "test_tui_safety.py::test_random_notes_cannot_act",
        ),
    ),
    45: Row(
        "a note tells the agent what to do",
        (
            "test_agent_tools.py::test_a_note_that_gives_orders_is_quoted_as_data_and_changes_no_tool",
            "test_agent_tools.py::test_hostile_characters_of_a_note_are_visible_in_the_answer",
        ),
    ),
    46: Row(
        "secrets in notes",
        (
            "test_text_secrets.py::test_keys_in_the_documented_shape_of_a_service_are_found_wherever_they_stand",
            "test_text_secrets.py::test_passwords_are_found_however_they_are_labelled",
            "test_text_secrets.py::test_notes_of_the_shared_logs_hold_no_secret",
            "test_sending.py::test_a_secret_is_not_sent_and_stays_findable_by_its_words",
            "test_sending.py::test_a_question_that_holds_a_secret_is_not_sent_and_answered_by_its_words",
            "test_agent_recall_log.py::test_secrets_are_masked_wherever_they_stand",
            "test_index_transcripts.py::test_no_secret_is_stored",
        ),
    ),
    47: Row(
        "a configuration that names another host or places outside",
        (
            "test_consent.py::test_a_configured_provider_gets_nothing_and_words_are_searched",
            "test_consent.py::test_a_key_alone_sends_nothing_and_meaning_is_there_from_the_first_start",
            "test_consent.py::test_the_key_of_one_provider_is_not_offered_to_the_next",
            "test_consent.py::test_an_agreement_is_for_one_workspace_provider_and_host",
            "test_embed_remote.py::test_redirects_are_not_followed",
            "test_config_files.py::test_what_may_not_be_included_is_reported_and_the_rest_counts",
        ),
    ),
    48: Row(
        "files that others can read",
        (
            "test_index_store.py::test_an_index_is_private_to_its_user",
            "test_index_store.py::test_a_lax_index_file_is_made_private",
            "test_index_faults.py::test_nothing_that_lies_about_is_lax",
            "test_curate_edit.py::test_mode_is_kept_and_the_journal_is_private",
            "test_agent_marks.py::test_only_its_owner_may_read_it",
            "test_agent_recall_log.py::test_only_its_owner_may_read_it",
            "test_consent.py::test_nobody_else_can_read_it",
        ),
    ),
    49: Row(
        "MCP: broken or huge messages, noise, end of input, a hundred calls, cancelled ones",
        (
            "test_agent_mcp.py::test_a_line_that_is_no_request_is_answered_and_the_next_one_too",
            "test_agent_mcp.py::test_half_a_character_is_replaced_and_the_request_is_answered_under_its_id",
            "test_agent_mcp.py::test_ids_of_every_kind_come_back_as_they_were",
            "test_agent_mcp.py::test_a_line_of_many_megabytes_is_answered",
            "test_agent_mcp.py::test_a_batch_is_answered_where_the_protocol_knows_batches_and_each_request_refused_elsewhere",
            "test_agent_mcp.py::test_what_is_printed_by_accident_does_not_reach_the_protocol",
            "test_agent_mcp.py::test_the_server_ends_with_its_input_and_leaves_nobody_behind",
            "test_agent_mcp.py::test_a_hundred_calls_at_once_are_all_answered_each_with_its_own",
            "test_agent_mcp.py::test_a_cancelled_question_is_given_up_and_others_are_answered",
        ),
    ),
    4: Row("memory runs out", ("test_durable_machine.py::test_too_little_memory_is_said_and_damages_nothing",)),
    5: Row(
        "killed between a change and its journal",
        ("test_durable_commands.py::test_a_command_under_faults", "test_durable.py::test_a_change_outlives_the_power"),
    ),
    6: Row(
        "a disk is full: notes, index or journal",
        (
            "test_durable.py::test_a_full_disk_leaves_no_part_of_a_text",
            "test_durable_machine.py::test_a_limit_on_the_size_of_files_leaves_no_part_of_a_text",
            "test_index_full.py::test_what_is_indexed_answers_when_nothing_can_be_written",
            "test_index_full.py::test_without_an_index_one_is_kept_elsewhere_for_the_time_being",
        ),
    ),
    7: Row(
        "notes, index or home cannot be written",
        (
            "test_durable_machine.py::test_notes_on_a_read_only_disk_are_searched_and_not_changed",
            "test_durable_machine.py::test_an_index_on_a_read_only_disk_is_kept_elsewhere_and_that_is_said",
            "test_durable_machine.py::test_without_a_home_notes_are_searched_and_changes_say_what_is_missing",
        ),
    ),
    9: Row(
        "a file system that other machines share",
        (
            "test_index_faults.py::test_the_nearest_mount_tells_the_kind",
            "test_index_faults.py::test_a_reader_follows_an_index_that_leaves_the_lower_layer",
        ),
    ),
    14: Row(
        "OpenClaw's database is locked, migrating or unknown",
        (
            "test_index_theirs.py::test_an_index_that_is_being_migrated_is_read_as_it_was_or_named",
            "test_index_theirs.py::test_columns_that_are_new_to_us_are_passed_over",
            "test_index_theirs.py::test_a_locked_index_is_told_soon",
        ),
    ),
    26: Row(
        "dates that cannot be, in file names",
        (
            "test_odd_dates.py::test_impossible_dates_are_evergreen_and_future_ones_get_no_boost",
            "test_odd_dates.py::test_each_date_that_cannot_be_is_pointed_out",
        ),
    ),
    28: Row(
        "a file or folder may not be read",
        (
            "test_durable_machine.py::test_what_may_not_be_read_is_named",
            "test_roots_state.py::test_a_workspace_that_may_not_be_read",
        ),
    ),
    29: Row(
        "no handles, lost events, an unmounted root",
        (
            "test_index_watch.py::test_a_process_without_handles_lists_instead_and_says_so",
            "test_roots_state.py::test_the_death_of_the_watcher_is_told_and_it_is_begun_anew",
            "test_roots_state.py::test_a_watcher_that_hangs_is_told",
            "test_roots_state.py::test_an_unmounted_workspace_keeps_its_few_notes",
        ),
    ),
    35: Row(
        "sqlite-vec is missing, broken or another version",
        ("test_search_fallbacks.py::test_whatever_sqlite_vec_is_the_answers_are_the_same",),
    ),
    36: Row(
        "no full-text search, no trigrams",
        ("test_search_fallbacks.py::test_an_sqlite_without_full_text_search_or_trigrams_is_told",),
    ),
    37: Row(
        "another model, size or norm of vectors",
        (
            "test_search_fallbacks.py::test_vectors_of_another_model_are_off_until_the_index_is_made_again",
            "test_index_vectors.py::test_more_neighbours_than_vec0_finds_at_once",
        ),
    ),
    39: Row(
        "offline at the first start, a proxy, a broken download",
        (
            "test_provider_network.py::test_offline_at_the_first_start_words_answer_and_meaning_follows",
            "test_provider_network.py::test_a_proxy_that_wants_a_login_or_is_not_there_is_named",
            "test_provider_network.py::test_a_certificate_that_nobody_trusts_gets_no_note",
            "test_provider_network.py::test_a_model_that_breaks_off_leaves_words_and_goes_on_where_it_was",
        ),
    ),
    40: Row(
        "the fallback at indexing and at asking",
        (
            "test_provider_network.py::test_a_provider_that_fails_half_way_leaves_no_vector_among_the_fallbacks",
            "test_provider_network.py::test_a_question_is_never_compared_with_vectors_of_another",
        ),
    ),
    51: Row(
        "tiny, dumb, colourless terminals and pipes",
        (
            "test_odd_terminals.py::test_a_tiny_terminal_says_so_and_a_larger_one_works",
            "test_odd_terminals.py::test_a_storm_of_resizes_is_survived",
            "test_odd_terminals.py::test_the_app_is_usable_or_says_why_not",
            "test_odd_terminals.py::test_a_pipe_gets_utf_8_without_escapes",
        ),
    ),
    52: Row(
        "wide and combined characters in columns",
        ("test_odd_terminals.py::test_columns_stay_aligned_beside_wide_and_combining_glyphs",),
    ),
    53: Row(
        "an editor that is missing, fails or races",
        (
            "test_curate_outside.py::test_an_editor_that_is_missing_or_fails_changes_nothing_and_says_so",
            "test_curate_outside.py::test_a_note_that_changes_while_the_editor_has_it_is_told_on_screen",
        ),
    ),
    54: Row(
        "undo after others changed the note, twice, after a restart",
        (
            "test_curate_edit.py::test_undo_after_others_changed_the_same_lines_and_twice_and_after_a_restart",
            "test_tui_curate.py::test_changes_that_do_not_touch_are_both_kept",
        ),
    ),
    55: Row(
        "most of the index vanishes without deletions",
        ("test_index_shrink.py::test_a_new_index_that_lacks_more_than_half_of_what_is_on_disk_is_not_published",),
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
        report = engine.sync()
        assert report.indexed == len(shapes)
        found = {hit.chunk.path for hit in engine.search("zebrafish").recalled}
    assert found == {f"memory/{name}.md" for name, text in shapes.items() if text.strip()}


@given(st.floats(-1e6, 1e6), st.floats(0.1, 1e5))
def test_age_is_never_below_nothing_and_decay_never_above_one(days: float, half_life: float) -> None:
    """Whatever the clock says: a note from tomorrow is as old as one of today."""
    factor = float(formulas.decay_factor(np.array([days]), half_life)[0])
    assert 0 <= factor <= 1
    assert days > 0 or factor == 1
