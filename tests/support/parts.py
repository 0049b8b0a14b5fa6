"""Tests that `make quick` and `make test` run in part: each n-th case, or none, where other tests prove the rest.

`CKPT_TEST_ALL=1` runs all cases.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.spark.live import EVERY_CASE

EACH: dict[str, int] = {
    # Every sample by the same code: plans differ by the kind of damage, and each kind has several samples.
    "changes/offsets/test_set.py::test_every_sample_is_planned_set_and_restored": 8,
    "changes/relocate/test_command.py::test_a_plan_changes_nothing_and_is_told_as_published": 5,
    "changes/rewind/test_rewind.py::test_every_batch_that_is_offered_can_be_gone_back_to_and_no_other": 2,
    "commands/test_prompt.py::test_every_call_on_the_page_of_a_sample_can_be_made": 4,
    "inspection/test_remedies.py::test_the_next_step_is_never_the_command_that_says_so": 6,
    "migrate/test_command.py::test_every_sample_is_told_as_published_and_left_alone": 6,
    "changes/prune/test_prune.py::test_what_could_be_done_before_can_be_done_after": 6,
    "changes/rewind/test_rewind.py::test_planned_applied_and_taken_back": 10,
    "inspection/explain/test_logs.py::test_nothing_is_found_in_the_log_of_a_query_that_ran": 4,
    "inspection/scan/test_scan.py::test_a_remote_root_is_told_as_a_local_one": 2,
    "laws/hostile/test_limits.py::test_the_cost_is_bounded_and_a_finding_names_the_file": 5,
    "laws/hostile/test_places.py::test_a_recorded_path_is_not_opened": 3,
    "laws/hostile/test_schemas.py::test_a_schema_that_is_odd_breaks_no_report": 3,
    "laws/test_same_everywhere.py::test_remote_and_local_inspections_differ_in_the_path_only": 6,
    "migrate/test_provider.py::test_every_sample_is_told_as_published_and_left_alone": 8,
    "state/native/test_samples.py::test_flat_rows_are_those_of_spark": 2,
    "state/native/test_samples.py::test_raw_rows_are_those_of_spark": 2,
    "state/native/test_samples.py::test_counts_are_those_that_the_store_records": 2,
    "webpage/test_page.py::test_a_page_says_what_the_document_says": 6,
    "commands/test_contract.py::test_every_sample_is_told_as_published": 2,
    "state/export/test_plan.py::test_a_plan_is_told_as_published_or_refused_in_one_line": 2,
    "migrate/test_generated.py::test_a_plan_is_told_as_published_and_nothing_is_written": 2,
    "migrate/handoff/test_command.py::test_every_sample_is_told_as_published_and_left_alone": 6,
    "inspection/preflight/test_document.py::test_a_damage": 2,
    "laws/test_next.py::test_a_damage_ends_as_its_page_says": 4,
    "new/rewrite/test_filtering.py::test_what_is_kept_is_what_arrow_keeps": 8,
    # The same code for each sample, or for each form of a log; `make quick` has some of them.
    "new/rewrite/test_filtering.py::test_nothing_is_left_of_the_keys_and_everything_of_others": 6,
    "new/evolve/test_guided.py::test_the_command_works_as_it_is_typed": 8,
    "new/test_killed.py::test_what_a_crash_leaves_does_not_start": 3,
    "new/copy/test_copy.py::test_every_sample_is_copied_as_published": 3,
    "laws/test_next.py::test_a_step_says_what_the_page_says": 5,
    "laws/test_next.py::test_the_steps_come_to_an_end": 5,
    "laws/test_agreement.py::test_where_the_number_of_partitions_is_wrong_no_key_is_in_any_sample": 8,
    "live/sink/test_kinds.py::test_where_the_sink_is_not_known_three_lines_say_what_becomes_of_rows": 6,
    "live/sink/test_kinds.py::test_a_page_says_nothing_of_other_sinks": 6,
    "state/verify/test_command.py::test_the_document_is_as_published_and_nothing_is_written": 2,
    "state/native/test_export.py::test_every_unit_of_every_sample": 2,
    "commands/test_report.py::test_every_text_of_a_page_is_masked": 3,
    "commands/test_terminal.py::test_the_page_of_every_sample_fits_80_columns": 4,
    # Recorded cases of the same few kinds.
    "live/sink/test_plans.py::test_a_rewind_promises_what_inspect_says_afterwards": 2,
    "live/test_recorded.py::test_what_is_said_of_a_table_is_what_happens": 2,
    "live/files/test_recorded.py::test_what_is_said_of_another_folder": 2,
    "live/files/test_recorded.py::test_what_is_said_is_what_is_read": 2,
    # Recorded for five versions, and compared with ckpt in `make quick`.
    "changes/fixes/async_gap/oracle/test_repairs_live.py::test_spark_starts_a_repaired_checkpoint_as_promised": 15,
    "restart/oracle/test_forecast.py::test_the_forecast_of_who_reads_every_byte_is_what_spark_did": 20,
    # Each incident is of the same two steps, and recorded with Iceberg.
    "live/sink/test_restored.py::*": 12,
    # The table is restored by the same code on each storage, with other options: live/sink/test_restored.py.
    "live/sink/test_restored_remote.py::*": 0,
    # A copy goes to S3 and to HDFS and back in new/copy/test_copy.py, and a query continues on one in test_live.py.
    "new/copy/test_move.py::test_a_query_counts_on_wherever_it_is_moved": 0,
    # Its commands are those of new/evolve/test_live.py, on another query.
    "new/evolve/test_runbook.py::*": 0,
    # Databases show the rest (live/sink/test_code.py).
    "live/sink/test_kafka_rows.py::*": 3,
    # Files are written and removed by the same code for every command; others are on the other storages.
    "new/test_remote.py::test_it_is_written_there_and_back_as_here": 3,
    "changes/test_remote.py::test_a_checkpoint_is_relocated_and_put_back": 2,
    # Of 320 recorded seeds.
    "laws/operator/test_live.py::test_a_seed_ends_as_recorded": 8,
    # Each kill leaves what a stop at the same change leaves.
    "changes/test_kill.py::test_a_change_killed_anywhere_is_undone_or_finished": 8,
    "changes/test_kill.py::test_an_undo_killed_anywhere_is_finished_by_another": 5,
    "changes/fixes/test_unattended.py::test_of_two_at_once_one_applies": 3,
    "changes/fixes/test_unattended.py::test_a_kill_at_any_moment_is_finished_by_the_next_run": 2,
    # Continued by the same code; recorded with all queries, on every version that reads them.
    "changes/prune/test_live.py::test_a_pruned_checkpoint_continues_exactly": 2,
    "new/rewrite/test_recorded.py::test_a_sink_has_every_row_once": 2,
    "new/fill/test_import_state.py::test_random_state_of_every_version_is_written_byte_for_byte": 2,
    "new/evolve/test_live.py::test_a_changed_query_continues": 3,
    "new/rewrite/test_continuing.py::test_it_continues_as_on_the_old_one": 2,
    "state/verify/test_abandoned.py::*": 2,
    "new/rewrite/test_continuing.py::test_lists_are_appended_to": 2,
    "inspection/alarms/test_remedies_live.py::test_a_repair_costs_the_rows_that_it_announces": 3,
    "changes/offsets/oracle/test_recorded.py::test_some_are_asked_again": 3,
    "changes/fixes/async_gap/oracle/test_repairs.py::test_what_ran_first_is_what_the_plan_promised": 5,
    "changes/oracle/test_recorded.py::test_the_next_start_was_the_one_that_was_promised": 2,
    "changes/oracle/test_recorded.py::test_rows_ranges_and_state_are_those_of_a_query_that_never_broke": 2,
    "new/rewrite/test_recorded.py::test_a_query_continued_as_on_the_old_checkpoint": 3,
    "checkpoint/state/test_state_errors.py::test_there_is_an_answer_for_everything": 4,
    "inspection/explain/test_command.py::test_a_finding_is_explained_by_its_declaration": 3,
    "laws/hostile/test_limits.py::test_other_commands_refuse_a_link_out_in_a_line": 3,
    "laws/hostile/test_limits.py::test_a_link_out_of_the_checkpoint_is_a_finding": 2,
    "laws/hostile/test_secrets.py::test_masking_takes_time_in_proportion": 2,
    "changes/test_manifest.py::test_an_edited_manifest_is_refused": 2,
    "changes/fixes/async_gap/test_command.py::test_a_plan_changes_nothing_and_is_told_as_published": 5,
    "changes/offsets/test_exchange.py::test_every_sample_is_exported_as_published_and_imported_unchanged": 2,
    # Damages of the same kinds to other samples, and pages of other findings by the same code.
    "changes/offsets/oracle/test_recorded.py::test_the_first_batch_is_the_one_that_was_set": 6,
    "inspection/alarms/test_alarms.py::test_a_look_says_whether_a_start_does_harm": 16,
    "laws/hostile/test_controls.py::test_no_text_of_a_record_reaches_a_page_raw": 3,
    "laws/test_garbage.py::test_a_log_file_of_garbage": 3,
    "laws/test_inspect_is_pure.py::test_whatever_happens_to_a_checkpoint_is_told": 3,
    "laws/test_inspect_is_pure.py::test_a_local_run_imports_nothing_heavy": 4,
    # Each process does what one does alone; each way to cut the work is compared once.
    "new/test_engines.py::test_processes_make_what_one_does": 4,
    "new/rewrite/test_rewrite.py::test_every_row_is_there_and_where_spark_looks_for_it": 9,
    "new/fill/test_import_state.py::test_what_was_read_is_written_byte_for_byte": 8,
    "new/fill/test_import_state.py::test_export_import_export": 8,
    # Rows of every store are compared with Spark's in state/export/matrix.json and, without Spark, in state/native.
    "state/export/test_cluster.py::test_an_export_on_a_cluster_is_the_local_one": 3,
    "state/export/test_initial.py::test_every_key_has_all_its_state_and_nothing_else": 10,
    "state/export/test_places.py::test_awkward_names": 5,
    "state/export/test_samples.py::test_a_round_trip_as_text_changes_nothing": 5,
    "state/export/test_samples.py::test_a_round_trip_of_everything_changes_nothing": 3,
    "state/export/test_samples.py::test_rows_are_those_of_an_independent_reading": 6,
    "state/native/test_diff.py::test_every_two_batches": 6,
    "state/native/test_export_live.py::test_samples": 3,
    "state/native/test_history.py::test_the_events_of_a_key_lead_to_every_state_of_it": 12,
    "state/native/test_history_live.py::test_a_key_that_comes_goes_and_comes_again": 6,
    "state/native/test_heavy.py::test_every_key_of_every_unit": 3,
    "state/native/test_show.py::test_every_key_is_found_in_the_partition_that_its_hash_names": 8,
    # The same code for each sample, or for each damage of a kind; the first ones run in `make quick` too.
    "changes/fixes/async_gap/oracle/test_repairs.py::test_auto_is_the_way_that_reads_least_again": 3,
    "changes/fixes/async_gap/test_laws.py::test_planned_applied_and_taken_back": 2,
    "changes/fixes/test_repair.py::test_an_emptied_commit_is_written_as_it_was_or_not_at_all": 2,
    "changes/fixes/test_repair.py::test_every_way_that_is_offered_leads_out_and_back": 2,
    "changes/skip/test_skip.py::test_planned_applied_and_taken_back": 2,
    "changes/test_deep.py::test_rows_that_do_not_fit_are_in_no_state_that_a_repair_goes_back_to": 2,
    "changes/test_disk_failures.py::test_whatever_fails_all_is_as_it_was_or_undo_makes_it_so": 2,
    "checkpoint/state/test_loaded_files.py::test_a_plain_look_says_of_a_sample_what_every_byte_says": 4,
    "docs/test_incidents.py::test_a_program_that_obeys_next_ends_where_the_row_does": 3,
    "docs/test_incidents.py::test_the_fix_of_the_row_is_the_one_that_helps": 3,
    "inspection/preflight/test_command.py::test_a_start_that_the_forecast_lets_run_is_a_go": 3,
    "inspection/preflight/test_document.py::test_a_sample": 3,
    "inspection/preflight/test_recipes.py::test_the_command_of_a_recipe_lets_start_or_holds": 2,
    "inspection/preflight/test_recorded.py::test_the_command_says_what_the_start_did": 2,
    "inspection/scan/test_resume.py::test_damaged_rows_are_replaced": 2,
    "inspection/scan/test_resume.py::test_every_form_says_that_it_started_over": 2,
    "inspection/scan/test_resume.py::test_rows_of_another_scan_are_replaced": 2,
    "laws/advice/test_typing.py::test_a_declared_call_is_a_command_line": 3,
    "laws/hostile/test_limits.py::test_a_sparse_file_of_an_export_is_refused_in_a_line": 2,
    "laws/test_agreement.py::test_both_say_the_same_of_a_sample": 3,
    "laws/test_inspect_is_pure.py::test_inspecting_changes_nothing_of_a_sample": 4,
    "state/native/test_partitions.py::test_rows_and_their_order_are_those_of_one_process": 2,
    "state/verify/test_contents.py::test_swapped_partitions_are_seen": 2,
    "state/verify/test_contents.py::test_what_does_not_fit_is_found": 2,
    "webpage/test_browser.py::test_a_page_fits_its_window": 3,
    # Live: the first of its kinds, and one or two more. The others differ in the store, the sink or the source, and
    # other tests run each of these live; most answers are recorded for every version, and compared in `make quick`.
    "new/copy/test_points.py::test_points_on_real_storage": 3,
    "changes/offsets/test_places.py::test_a_query_of_delta_continues_there": 3,
    "changes/offsets/test_places.py::test_the_query_continues_there": 3,
    "state/export/test_writing.py::test_an_interrupted_export_leaves_nothing_that_looks_whole": 2,
    "state/export/test_places.py::test_moved_while_the_old_place_holds_another": 3,
    "changes/offsets/test_live.py::test_delta_begins_at_another_version": 3,
    "changes/offsets/test_live.py::test_state_counts_what_was_skipped_never_and_what_is_read_again_twice": 3,
    "changes/offsets/test_live.py::test_an_uncommitted_batch_runs_over_its_new_range": 3,
    "changes/offsets/test_live.py::test_rate_micro_batch_begins_elsewhere": 2,
    "changes/fixes/test_never_computed.py::test_each_row_is_written_once_by_who_obeys": 3,
    "changes/fixes/test_never_computed.py::test_of_a_part_both_starts_are_left_open": 2,
    "changes/fixes/test_renamed.py::test_no_row_is_read_again": 3,
    "changes/offsets/test_move.py::test_each_record_comes_once_where_the_plan_is_exact": 3,
    "changes/offsets/test_kafka.py::test_the_next_batch_reads_from_what_was_set": 3,
    "changes/offsets/test_reset_tool.py::test_kafkas_own_tool_says_the_same": 3,
    "new/test_engines.py::test_executors_make_what_one_process_does": 3,
    "new/test_remote.py::test_a_file_that_is_refused_leaves_nothing": 2,
    "new/test_remote.py::test_an_export_is_read_behind_a_network": 2,
    "new/rewrite/test_spark_2.py::test_it_continues_as_on_the_old_one": 3,
    "new/evolve/test_pairs.py::test_a_pair_is_continued": 3,
    "new/evolve/test_windows.py::test_open_windows_are_those_of_a_query_from_the_beginning": 2,
    "new/evolve/test_expiry.py::test_keys_stay_until_the_newest_expires": 2,
    "new/rewrite/test_continuing.py::test_a_sink_has_every_row_once": 2,
    "new/rewrite/test_continuing.py::test_state_of_another_codec_keeps_it": 2,
    "new/copy/test_live.py::test_a_copy_of_a_running_query_continues_exactly": 2,
    "new/test_rehearse.py::test_without_new_rows_it_reads_those_of_a_batch_again": 2,
    "live/sink/test_other_batches.py::test_a_restored_checkpoint_that_was_started_once_gets_every_row_back": 2,
    "live/sink/test_gone.py::test_only_a_new_checkpoint_writes_the_earlier_rows_again": 2,
    "live/kafka/test_secured.py::test_the_options_of_the_query_reach_the_broker": 2,
    "live/kafka/test_kafka.py::test_what_is_said_is_what_happens": 2,
    "live/kafka/test_reading.py::test_what_is_around_each_offset_is_read": 2,
    "state/export/test_joins.py::test_joins": 3,
    "state/export/test_null_structs.py::test_they_are_apart_or_said_not_to_be": 2,
    "state/export/test_damaged.py::test_the_batch_that_is_offered_instead_can_be_read": 3,
    "state/export/test_connect.py::test_state_is_that_of_a_classic_session": 2,
    "state/export/test_initial.py::test_what_is_written_is_read_back_equal": 2,
    "state/export/test_initial.py::test_rows_of_a_join_in_their_order": 2,
    "state/export/test_initial.py::test_one_shuffle_where_keys_are_brought_together_and_none_elsewhere": 3,
    "state/export/test_samples.py::test_changes_add_up_to_the_state": 2,
    "state/export/test_samples.py::test_raw_is_what_spark_gives": 2,
    "state/native/test_live.py::test_queries_made_to_be_difficult": 2,
    "state/native/test_live.py::test_joins": 2,
    "state/native/test_live.py::test_rows_with_checksums": 2,
    "state/native/test_live.py::test_a_key_of_each_type_is_found": 3,
    "state/native/test_executors.py::test_executors_answer_as_processes_do": 2,
    "laws/field/test_live.py::test_a_damage_ends_as_recorded": 3,
    "laws/test_next_live.py::test_the_rows_that_come_again_were_announced": 3,
    "restart/realtime/test_live.py::test_spark_still_answers_as_recorded": 2,
    "restart/oracle/test_live.py::test_spark_still_answers_as_recorded": 3,
    "storage/test_writers.py::test_a_file_that_is_replaced_is_never_missing": 2,
}
"""A test, or ``*`` for all of a file, and which of its cases are run: the first, and each n-th after it; 0: none."""


_MARKED = re.compile(r"^pytestmark = \[?pytest\.mark\.(spark|service|slow)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file none of whose tests would run: that would be a third of the time that collecting takes."""
    asked = config.option.markexpr
    if collection_path.suffix != ".py" or "(" in asked or " or " in asked or "not " not in asked:
        return None
    marked = _MARKED.search(collection_path.read_text(encoding="utf-8"))
    return True if marked and f"not {marked[1]}" in asked.split(" and ") else None


def pytest_sessionstart() -> None:
    """Items are collected by the ten thousand, and stay: to look for garbage among them again and again is in vain."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on, among what the tests themselves make."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what others show, unless all is asked for."""
    if EVERY_CASE:
        return
    met: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    top = len(f"{ROOT}/tests/")
    for item in items:
        file = str(item.path)[top:]
        name = f"{file}::{getattr(item, 'originalname', '')}"
        name = name if name in EACH else f"{file}::*"
        each = EACH.get(name, 1)
        (kept if each and met[name] % each == 0 else left_out).append(item)
        met[name] += each != 1
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)
