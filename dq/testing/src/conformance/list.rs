//! The list of the behaviours.

/// Hands the list to [`store_conformance`], for `$what`.
#[doc(hidden)]
#[macro_export]
macro_rules! store_behaviours {
    ($what:ident $with:tt) => { $crate::store_conformance! { @$what $with
        adds:
            added_job_waits_with_its_record due_time_rounds_up_and_now_rounds_down job_without_a_delay_is_due_now
            past_due_time_becomes_now batch_is_answered_job_by_job id_repeated_in_a_batch_is_added_once
            generated_ids_are_added expiry_is_stored_as_a_time expired_job_is_claimed metadata_of_an_added_job_is_kept
            unreadable_record_does_not_affect_its_batch payload_of_any_bytes_comes_back id_can_be_any_text
            add_over_the_limit_changes_nothing topics_are_independent apps_are_independent
            topics_that_hold_something_are_listed_in_order topics_are_listed_behind_a_name topic_can_be_opened_again;
        duplicates:
            reject_and_keep_leave_a_known_job replace_takes_the_place_of_a_job_that_is_not_running
            replacement_brings_its_own_due_time done_job_does_not_count_as_existing
            job_added_over_a_done_one_outlives_the_old_retention replaced_job_leaves_its_old_place
            replacement_of_a_running_job_waits replacement_is_due_counted_from_its_add
            later_replacement_takes_the_place_of_an_earlier_one reject_and_keep_leave_a_waiting_replacement
            replacement_starts_afresh replacement_is_not_charged_crashes_of_the_old_run id_is_free_after_its_end
            replacement_has_its_own_retention;
        taken:
            ended_job_counts_as_existing_while_its_id_is_taken each_job_of_a_batch_takes_its_id_for_its_time
            deleted_job_leaves_its_id_taken id_of_a_run_under_a_pending_end_stays_taken
            id_stays_taken_however_its_job_has_ended replacement_of_a_taken_id_is_a_new_job
            later_add_does_not_shorten_the_time_of_an_id taken_ids_wait_for_nothing
            deleted_far_job_leaves_its_id_taken copy_keeps_until_when_its_id_is_taken;
        numbered:
            repeated_add_does_nothing repeated_answer_is_the_first_one repeated_command_does_nothing
            number_below_the_highest_is_late late_command_removes_nothing adds_and_commands_share_their_numbers
            sixteen_answers_are_kept numbers_belong_to_one_producer call_is_repeated_over_a_new_handle
            answers_are_kept_for_an_hour numbers_may_leave_gaps repeated_requeue_does_nothing
            calls_are_executed_in_their_order dropped_answer_does_not_stop_the_request;
        transfer:
            job_is_not_claimed_before_it_is_due claim_has_what_a_run_needs jobs_are_claimed_in_the_order_they_are_due
            returned_job_competes_by_its_due_time transfer_is_bounded_and_reports_more
            transfer_of_everything_due_reports_no_more claimed_job_is_not_claimed_again fence_is_the_clock_of_the_transfer
            fences_of_two_transfers_differ fence_grows_when_the_clock_jumps_back
            wrong_sequence_number_claims_and_renews_nothing unknown_node_must_reconcile_first
            empty_transfer_takes_a_sequence_number transfer_that_arrives_twice_claims_once
            sequence_numbers_belong_to_one_node sequence_number_is_kept_for_a_day transfer_takes_delayed_jobs_only
            transfer_returns_the_earliest_foreign_lease due_times_may_be_years_away
            clock_that_jumps_back_makes_nothing_early;
        settle:
            acked_job_is_gone acked_job_is_kept_for_its_retention rejoined_job_is_due_at_the_requested_time
            rejoined_job_keeps_its_record retried_job_waits_with_its_new_metadata retry_is_due_after_the_exact_backoff
            rolled_back_job_keeps_its_due_time parked_job_keeps_the_fence_of_its_run dead_job_keeps_its_cause
            parking_fence_of_new_metadata_is_ignored stale_token_settles_nothing outcome_of_a_reclaimed_run_is_stale
            repeated_outcome_is_stale stale_outcome_does_not_hold_back_the_others job_named_twice_is_settled_once
            outcome_under_an_expired_lease_applies outcome_under_a_wrong_sequence_number_applies
            settled_outcome_clears_the_crash_count;
        follow_ups:
            follow_ups_arrive_after_their_outcome stale_outcome_has_no_follow_ups dead_job_has_follow_ups
            follow_ups_go_with_an_end_from_outside follow_up_that_comes_again_does_nothing
            follow_up_waits_for_the_one_before_it follow_up_that_has_not_arrived_stays_in_the_outbox
            follow_up_that_was_not_answered_stays_in_the_outbox
            positions_of_follow_ups_grow one_node_relays target_that_drains_holds_up_no_other follow_ups_wait_for_room
            follow_up_with_a_known_id_is_refused follow_up_deletes_a_job follow_ups_over_the_limit_change_nothing
            outbox_is_read_page_by_page;
        job_sets:
            last_job_of_a_set_comes_once_when_all_members_have_ended set_without_members_ends_at_once member_counts_once_however_often_it_is_added change_of_a_set_is_one_call each_way_of_leaving_ends_a_member
            job_that_comes_back_is_still_a_member set_waits_for_its_dead_members dead_member_cancels_the_rest closed_set_takes_members_of_its_members_only job_is_a_member_of_one_set sets_come_in_pages
            replaced_or_extended_member_is_still_one broadcast_in_the_place_of_a_member_ends_it member_that_crashes_too_often_is_dead removal_of_an_ended_member_counts_no_second_time sets_of_a_topic_are_bounded;
        ticks:
            tick_adds_its_jobs_and_waits_for_the_next tick_of_another_run_adds_nothing
            tick_of_a_dead_node_is_claimed_again tick_leaves_known_jobs tick_adds_nothing_until_the_last_job_has_ended
            tick_sees_what_its_request_has_ended last_tick_removes_the_schedule next_tick_is_later_than_this_one
            tick_obeys_a_pending_command jobs_of_a_tick_go_where_they_should tick_keeps_large_records_and_retentions
            tick_over_the_limit_changes_nothing schedules_are_listed_in_order schedule_is_listed_as_long_as_it_exists
            tick_is_a_change;
        gated_ticks:
            tick_passes_a_full_topic tick_passes_a_spent_rate tick_goes_before_the_jobs_that_a_gate_may_hold_back
            watcher_of_a_full_topic_is_told_of_ticks tick_of_a_full_topic_has_the_time_of_its_schedule
            tick_of_a_full_topic_waits_for_the_end_of_a_pause;
        leases:
            claim_writes_the_lease node_without_jobs_has_no_lease lease_goes_with_the_last_row
            steps_that_name_the_sequence_number_renew steps_that_name_another_sequence_number_renew_nothing
            unresponsive_node_cannot_keep_what_it_claimed renew_never_creates_a_lease renewal_may_shorten_a_lease
            lease_far_ahead_is_cut lease_is_at_most_five_minutes every_answer_carries_the_lease_status
            release_without_rows_leaves_no_lease rows_of_a_released_node_are_free_at_once
            nothing_is_claimed_for_a_released_node release_accepts_any_sequence_number lease_ends_at_its_millisecond;
        reconcile:
            reconcile_takes_a_sequence_number_beyond_both
            reconcile_returns_every_row
            reconcile_pages_through_the_rows
            later_page_must_name_the_sequence_number
            page_continues_after_a_row_that_is_gone
            reconcile_renews_nothing
            jobs_of_a_lost_answer_are_found_and_given_back
            transfer_from_before_a_reconcile_claims_nothing;
        reclaim:
            reclaimed_job_is_due_when_it_was
            live_lease_is_not_reclaimed
            changed_lease_is_not_reclaimed
            reclaim_is_bounded
            reclaim_stops_when_the_node_renews
            reclaim_happens_once
            crashes_add_up
            quarantined_job_that_had_not_started_is_not_charged
            grouped_job_is_never_convicted
            job_that_ran_alone_is_convicted
            job_that_made_room_is_not_convicted
            final_retry_is_owed_after_a_crash_before_it
            final_run_that_crashes_is_the_last
            final_run_that_was_not_alone_comes_back
            isolation_ends_with_the_run
            isolated_job_of_a_released_node_is_not_charged
            cap_is_an_argument
            commands_clear_the_crash_count
            exhaustion_survives_a_crash;
        notes:
            noted_job_stays_running stale_token_notes_nothing isolate_answers_for_each_run ends_of_runs_are_read
            late_isolate_notes_nothing nothing_starts_under_an_unfenced_end nothing_starts_under_an_end_with_a_replacement
            handlers_start_under_a_fenced_end handlers_start_under_a_replacement notes_end_with_the_job;
        kept:
            checkpoint_is_there_for_the_next_run outcome_brings_its_state late_checkpoint_is_refused
            replacement_has_no_state state_stays_with_the_job checkpoint_leaves_the_parking_fence
            large_states_count_in_the_bytes_of_a_claim progress_lasts_as_long_as_the_run
            earlier_note_does_not_replace_a_later_one;
        results:
            result_is_kept_with_the_ack result_concerns_only_its_job result_survives_export_and_import
            late_result_is_refused_and_an_end_or_a_replacement_overrides_one done_jobs_are_pruned_by_number;
        pending:
            running_job_gets_a_pending_command
            end_applies_on_every_way_out
            acked_running_job_is_kept_as_done
            replacement_takes_the_place_on_every_way_out
            add_under_an_end_becomes_the_replacement
            second_add_under_an_end_finds_the_first
            delete_drops_the_waiting_replacement
            ack_keeps_the_waiting_replacement
            delete_after_delete_and_add_drops_the_new_job
            of_an_ack_and_a_delete_the_delete_applies
            stale_outcome_does_not_use_up_a_pending_command
            pending_command_affects_only_its_job
            running_job_is_not_requeued
            ended_job_does_not_come_back_by_crashes
            ends_of_running_jobs_are_signalled
            fenced_ack_is_not_signalled
            command_for_a_waiting_job_leaves_no_pending_command;
        fenced:
            ack_of_this_run_applies_on_every_way_out
            ack_of_an_older_run_is_dropped
            fenced_ack_leaves_a_waiting_job
            fence_of_a_parked_job_is_compared
            fence_of_an_earlier_park_is_void
            reject_under_a_fenced_end_finds_the_job
            keep_under_a_fenced_end_applies_if_the_end_does
            keep_under_a_fenced_end_is_dropped_if_the_end_does_not_apply
            replacement_applies_whether_a_fenced_end_does_or_not
            of_a_fenced_and_an_unfenced_end_the_unfenced_one_applies
            unfenced_ack_makes_a_conditional_replacement_unconditional
            ack_of_the_later_run_applies
            fenced_requeue_leaves_a_dead_job;
        commands:
            deleted_job_is_returned unknown_job_is_not_found deleted_job_is_not_claimed
            ack_ends_a_waiting_or_parked_job requeued_dead_job_starts_afresh
            requeued_unacked_job_keeps_its_attempts_and_expiry requeue_clears_crashes
            commands_are_answered_one_by_one command_over_the_limit_changes_nothing command_may_name_the_version
            version_of_a_command_is_that_of_the_changed_job;
        changing:
            delayed_job_gets_another_due_time waiting_broadcast_gets_another_due_time running_job_is_not_changed
            change_of_a_running_job_leaves_its_pending_command unacked_or_dead_job_gets_no_due_time
            done_job_is_not_changed change_of_an_unknown_id_says_so change_may_name_the_version
            version_of_a_running_job_is_answered new_job_begins_with_version_zero
            changes_of_a_batch_are_applied_in_order repeated_change_does_nothing past_due_time_of_a_change_becomes_now
            job_is_rescheduled_to_a_time extension_counts_from_the_due_time expiry_moves_along
            change_leaves_the_delay_of_a_rejoin change_keeps_attempts_and_crashes far_job_is_changed
            job_and_broadcast_are_changed_together broadcast_beside_a_parked_job_gets_its_payload
            rewritten_broadcasts_are_bounded_by_bytes last_version_is_not_changed
            change_over_the_limit_changes_nothing batch_of_a_thousand_changes earlier_head_of_a_change_is_signalled
            earlier_broadcast_of_a_change_is_signalled;
        updating:
            delayed_job_gets_another_payload waiting_broadcast_gets_another_payload unacked_job_gets_another_payload
            dead_job_gets_another_payload payload_may_grow_and_shrink updated_records_count_with_their_size
            unreadable_record_is_mended job_gets_other_options options_are_changed_where_a_payload_is
            retention_of_a_changed_job_applies;
        extending:
            extension_adds_an_unknown_job extension_moves_a_delayed_job extension_cannot_starve_a_job
            extension_beyond_the_limit_is_now extension_of_an_ordinary_job_counts_from_now
            extension_keeps_the_rest_of_the_job extension_of_a_running_job_becomes_its_replacement
            extension_moves_a_waiting_replacement extension_moves_an_ordinary_replacement
            extension_under_an_end_is_not_lost extension_leaves_a_job_that_waits_for_no_time
            extension_moves_a_waiting_broadcast extension_moves_job_and_broadcast_together
            repeated_extension_extends_once extension_signals_an_earlier_head far_job_is_extended
            extension_may_grow_and_shrink_a_payload extended_replacements_are_bounded_by_bytes
            last_version_is_not_extended;
        parked:
            parked_job_is_claimed_at_its_age
            aged_claim_is_a_claim
            sweep_under_a_wrong_sequence_number_does_nothing
            sweeping_is_bounded
            kept_job_keeps_its_parking_fence
            returned_aged_job_is_parked_as_before
            retried_aged_job_is_no_longer_parked
            requeue_clears_the_crashes_of_an_aged_job
            requeued_job_is_no_longer_parked
            dropped_aged_job_is_gone
            ack_of_the_parked_run_ends_an_aged_job
            dead_jobs_are_pruned_by_age
            dead_jobs_are_pruned_by_number
            done_jobs_are_pruned_after_their_retention
            pruning_is_bounded;
        lookahead:
            lookahead_claims_what_is_due_within_it
            lookahead_is_bounded_and_reports_more
            watchers_that_look_ahead_come_earlier
            job_claimed_early_goes_back_to_its_due_time
            end_of_a_job_claimed_early_is_signalled_and_takes_effect_when_it_goes_back;
        far:
            far_job_waits_like_any_other
            far_job_is_claimed_when_it_is_due
            watcher_does_not_sleep_past_a_far_job
            overdue_far_jobs_are_claimed_in_order
            commands_end_far_jobs
            far_job_is_replaced
            batch_of_near_and_far_jobs_is_answered_in_order
            pages_cross_from_near_to_far
            many_far_jobs_may_be_due_together
            far_jobs_may_come_in_any_order;
        roles:
            watcher_and_standby_sleep_until_the_head
            no_node_sleeps_longer_than_the_fallback
            watcher_that_leaves_due_jobs_comes_again_at_once
            claimed_job_is_not_the_head
            role_of_a_watcher_that_does_not_come_is_taken_over
            role_of_a_standby_that_does_not_come_is_taken_over
            standby_that_takes_over_leaves_its_role
            wake_and_release_free_the_roles
            wake_signals_the_other_nodes
            release_of_the_watcher_signals_the_other_nodes
            earlier_head_wakes_the_watcher
            watcher_that_does_not_come_for_an_earlier_head_is_replaced
            watcher_that_comes_for_an_earlier_head_keeps_its_role
            signal_prolongs_no_role
            earlier_head_wakes_all_nodes_when_the_watcher_does_not_listen
            watcher_that_does_not_listen_loses_its_role
            earlier_head_wakes_all_nodes_once_the_watcher_has_lapsed
            earlier_head_wakes_all_nodes_without_a_watcher
            every_earlier_head_is_signalled
            clock_that_jumps_back_prolongs_no_sleep
            roles_of_a_dead_node_are_cut_after_the_clock_jumped_back;
        told:
            new_lease_is_told_to_the_watcher
            new_lease_of_the_watcher_is_told_to_the_standby
            new_lease_is_told_to_all_nodes_without_another_role
            leases_are_told_once_until_the_told_one_ends
            lease_that_ends_before_the_told_one_is_told
            lease_of_the_told_node_is_told_to_another
            new_watcher_is_told_of_a_new_lease
            a_node_that_comes_after_all_were_told_is_told
            new_lease_is_told_to_all_nodes_when_the_watcher_does_not_listen
            lease_of_a_sweep_is_told;
        broadcasts:
            due_broadcast_is_published_once
            broadcast_is_not_published_before_it_is_due
            published_broadcasts_are_numbered
            broadcast_is_not_claimed
            expired_broadcast_is_dropped
            broadcast_is_published_until_it_expires
            both_adds_a_job_and_a_broadcast
            retry_publishes_nothing
            job_and_broadcast_are_replaced_together
            job_and_broadcast_are_deleted_together
            waiting_broadcast_is_deleted
            waiting_broadcast_makes_its_id_known
            query_finds_a_waiting_broadcast
            broadcast_of_a_known_id_finds_the_job
            replaced_broadcast_is_published_as_the_new_one
            broadcast_leaves_nothing_of_the_job_that_it_replaces
            publishing_is_bounded
            publisher_sleeps_until_the_next_broadcast
            earlier_broadcast_is_signalled
            earlier_broadcast_is_signalled_to_the_publisher
            replacement_for_both_adds_a_job_and_a_broadcast
            delete_of_a_running_job_removes_its_broadcast;
        queries:
            counts_cover_every_place
            counts_agree_with_transfer_about_what_is_due
            pages_come_in_order
            every_place_has_pages
            pages_of_running_name_the_holder
            page_continues_after_a_job_that_is_gone
            get_answers_in_the_order_of_the_ids
            query_over_the_limit_is_refused
            scan_returns_leases_and_the_audit
            queries_change_nothing;
        inspection:
            overview_shows_a_topic_as_a_whole
            due_counts_have_each_job_in_one_span
            why_names_what_a_waiting_job_waits_for
            why_names_what_keeps_a_due_job
            why_names_the_jobs_of_a_higher_priority
            why_names_what_became_of_a_job
            why_names_the_crashes_of_a_job
            why_names_a_job_that_comes_next_and_one_that_expired
            nodes_come_page_after_page
            pages_of_running_jobs_lead_on
            filters_give_pages_that_lead_on
            bulk_change_goes_on_where_it_stopped;
        statistics:
            claims_are_counted_with_their_lateness
            ends_of_runs_are_counted_by_their_outcomes
            a_batch_of_acks_is_counted
            a_tick_counts_as_a_run
            crashes_that_make_a_job_dead_are_counted
            stale_outcomes_are_not_counted
            parked_jobs_that_are_swept_are_no_claims_of_due_ones
            a_link_that_does_not_count_leaves_nothing
            each_minute_has_its_own_statistics
            statistics_of_a_day_ago_make_room
            statistics_over_the_limit_are_refused
            overview_has_the_statistics_of_the_last_minutes
            past_has_the_minutes_of_an_hour_and_the_hours_of_a_day;
        listening:
            moves_of_runs_are_told
            a_step_tells_all_its_moves_at_once
            moves_over_a_run_are_told_twice
            rare_moves_are_told
            a_slow_listener_hears_what_it_missed
            a_message_with_moves_is_bounded_by_bytes;
        histories:
            history_has_the_moves_of_a_job
            topic_keeps_no_history_unless_it_is_told_to
            history_keeps_the_newest_moves
            history_goes_with_the_job
            history_after_the_end_says_who_deleted_the_job
            histories_of_ended_jobs_are_forgotten
            id_added_again_goes_on_with_its_history
            each_job_of_a_batch_has_its_history
            histories_are_forgotten_when_the_topic_keeps_none
            history_over_the_limits_is_refused
            history_names_the_callers_of_commands_and_changes
            history_of_a_broadcast_ends_with_it;
        bytes:
            transfer_is_bounded_by_bytes
            one_large_job_always_passes
            transfer_of_failed_jobs_is_bounded_by_bytes
            sweep_is_bounded_by_bytes
            publish_is_bounded_by_bytes
            settle_is_bounded_by_the_bytes_of_replacements
            reclaim_is_bounded_by_the_bytes_of_replacements
            pages_are_bounded_by_bytes
            get_is_bounded_by_bytes
            removed_records_are_bounded_by_bytes;
        limits:
            request_over_its_limit_changes_nothing
            record_over_a_limit_of_the_format_changes_nothing;
        audit:
            audit_finds_no_job_that_has_a_place
            recover_touches_no_job_that_has_a_place
            audit_over_the_limit_is_refused;
        exports:
            export_has_every_job
            export_has_metadata_and_crashes
            export_of_an_import_is_the_same
            running_job_is_exported_as_if_given_back
            pending_end_has_taken_effect_in_an_export
            replacement_has_taken_effect_in_an_export
            pages_of_an_export_are_bounded
            export_names_the_newest_fence
            export_changes_nothing;
        imports:
            imported_job_is_in_its_place
            imported_due_time_stays
            imported_job_is_claimed_as_it_was
            imported_parked_job_keeps_its_fence
            imported_job_has_nothing_of_another_place
            imported_jobs_are_pruned_at_their_time
            import_keeps_known_jobs
            import_that_is_rejected_changes_nothing
            import_replaces_what_does_not_run
            import_leaves_nothing_of_the_replaced_job
            job_and_broadcast_of_an_id_are_two_copies
            imported_earlier_head_is_signalled
            import_raises_the_fence
            import_of_a_fence_that_no_clock_reaches_is_refused
            a_fence_that_no_clock_reaches_is_found_and_repaired
            repeated_import_does_nothing
            imported_record_comes_back
            import_over_the_limit_changes_nothing;
        paused:
            paused_topic_claims_nothing
            state_of_an_untouched_topic_is_empty
            every_answer_about_a_topic_tells_of_its_pause
            transfer_of_a_paused_topic_renews
            resumed_topic_claims_what_became_due_in_order
            far_jobs_are_claimed_after_a_pause
            pause_ends_by_itself
            ended_pause_stays_until_the_next_pause_or_resume
            pause_may_end_at_a_time
            lookahead_does_not_shorten_a_pause
            adds_and_commands_of_a_paused_topic_go_on
            runs_of_a_paused_topic_end_as_usual
            jobs_of_a_paused_topic_are_reclaimed
            sweep_of_a_paused_topic_only_prunes
            broadcasts_of_a_paused_topic_wait_or_expire
            pause_and_resume_are_signalled
            pausing_again_changes_the_pause
            pause_is_of_one_topic
            repeated_set_does_nothing
            reasons_and_authors_are_any_texts_within_their_limits;
        draining:
            draining_topic_refuses_new_jobs
            commands_of_a_draining_topic_go_on
            add_from_before_a_drain_is_answered_again
            draining_topic_runs_what_was_due
            retries_of_a_draining_topic_wait
            sweep_of_a_draining_topic_claims_nothing
            broadcasts_of_a_draining_topic_go_out_if_they_were_due
            draining_again_changes_the_reason
            topic_may_be_paused_and_drain
            drain_and_its_end_are_signalled;
        delays:
            usual_delay_applies_while_the_topic_has_none default_delay_takes_the_place_of_the_usual_one
            job_with_a_default_delay_keeps_the_rest_of_its_metadata default_delay_applies_to_jobs_of_every_kind
            default_delay_may_be_much_longer_or_shorter_than_the_usual_one default_delay_is_kept_with_its_author;
        slots:
            no_more_jobs_run_on_all_nodes_than_may every_end_of_a_run_gives_its_slot_back
            free_slot_wakes_the_watcher_once slot_of_a_dead_node_wakes_the_watcher limit_that_was_set_outweighs_the_code
            watcher_is_told_of_the_later_head_when_no_due_job_waits sweep_takes_slots_too limit_is_within_its_bounds limits_of_two_kinds_are_kept_beside_each_other;
        full:
            jobs_beyond_what_may_wait_are_refused_one_by_one limit_of_the_code_counts_unless_the_topic_has_one
            jobs_that_are_due_much_later_count_as_waiting known_job_of_a_full_topic_keeps_its_answer
            what_comes_back_to_a_full_topic_waits broadcasts_and_schedules_of_a_full_topic_pass
            refusal_of_a_full_topic_is_the_answer_of_a_repeat import_into_a_full_topic_is_refused;
        full_groups:
            jobs_beyond_what_may_wait_of_a_group_are_refused_one_by_one limit_of_the_code_counts_for_groups job_that_is_due_much_later_counts_in_its_group
            what_comes_back_to_a_full_group_waits refusal_of_a_full_group_is_the_answer_of_a_repeat import_into_a_full_group_is_refused;
        rates:
            no_window_has_more_claims_than_the_rate_and_its_burst burst_comes_back_in_a_quiet_time
            watcher_comes_when_the_rate_opens sweep_spends_the_rate tick_spends_none_of_the_rate job_spends_its_weight_of_the_rate
            job_heavier_than_the_burst_waits_for_its_weight claims_before_a_rate_count_as_one
            clock_that_jumps_back_costs_one_interval rate_that_was_set_overrides_the_code
            back_off_pauses_the_topic_in_the_same_step;
        priorities:
            due_jobs_are_claimed_by_their_priorities job_that_is_due_for_the_ageing_longer_goes_first
            low_job_starts_under_a_flood_of_high_ones job_that_is_not_due_competes_with_none
            head_is_the_earliest_of_all_priorities priority_survives_every_way_back
            only_a_replacement_changes_the_priority pages_have_all_priorities_in_order_of_time
            job_of_any_priority_leaves_its_place priority_survives_export_and_import
            jobs_of_a_tick_have_their_priorities draining_topic_counts_all_priorities ageing_is_what_the_node_says
            claim_by_priority_is_bounded;
        groups:
            one_job_of_a_group_runs_at_a_time
            jobs_of_a_group_start_in_the_order_of_due_times_then_of_adds
            every_end_of_a_run_lets_the_next_job_of_its_group_come
            job_that_goes_back_keeps_its_seat
            group_waits_for_a_retry_unless_the_node_lets_it_pass dead_job_stops_its_group_if_its_node_says_so
            waiting_jobs_of_a_group_change_like_others far_job_joins_its_group_when_it_comes_near
            limit_of_a_group_changes_while_its_jobs_run blocked_jobs_are_in_pages_counts_and_drains
            free_seat_wakes_the_watcher group_survives_export_and_import
            jobs_of_a_tick_join_their_groups priority_does_not_reorder_a_group;
        stopped:
            query_names_the_groups_and_who_has_their_seats groups_come_in_pages stopped_group_passes_the_job
            group_waits_for_what_its_node_names parked_job_stops_its_group_until_it_is_acked
            job_that_waits_for_its_retry_is_passed pass_of_what_has_no_seat_changes_nothing;
        turns:
            groups_take_turns_however_long_the_jobs_of_one_have_been_due job_at_the_turn_of_its_group_keeps_its_due_time
            turn_stays_with_its_group draining_topic_asks_the_due_time_at_a_turn turn_is_no_time_before_the_due_time
            turns_compete_by_priority claim_of_turns_is_bounded;
        bursts:
            group_borrows_what_is_idle group_that_borrows_gives_back burst_passes_no_job_that_its_group_waits_for burst_obeys_pauses_and_slots burst_that_was_set_overrides_the_code;
        group_rates:
            no_window_has_more_claims_of_a_group_than_its_rate group_that_has_spent_its_rate_is_due_later rate_of_groups_that_was_set_overrides_the_code job_spends_its_weight_of_the_rate_of_its_group
            parked_job_obeys_the_pause_and_the_rate_of_its_group faster_rate_of_groups_reaches_a_retry_that_waits;
        heavy:
            job_heavier_than_a_period_of_the_rate_is_refused rate_in_the_code_of_a_node_refuses_heavy_jobs only_what_comes_into_the_queue_is_too_heavy
            heavy_job_that_comes_back_waits refusal_of_a_heavy_job_is_the_answer_of_a_repeat import_of_a_heavy_job_is_refused;
        paused_groups:
            jobs_of_a_paused_group_wait_and_the_others_run pause_of_a_group_ends_by_itself
            job_with_a_seat_waits_for_the_end_of_the_pause jobs_of_a_paused_group_change_like_others
            pause_of_a_group_is_kept_with_its_author draining_topic_waits_for_a_paused_group back_off_pauses_only_the_group_of_the_job;
        examining:
            sound_topic_has_no_mismatch job_that_does_not_decode_is_given_up_with_its_payload
            record_that_cannot_be_read_becomes_the_payload_of_the_dead_job
            job_that_runs_or_has_another_payload_is_not_given_up doctor_gives_up_what_does_not_decode_and_nothing_else
            doctor_names_dead_jobs_whose_json_no_node_decoded doctor_names_the_versions_of_the_nodes_that_live;
        together:
            nodes_that_claim_at_once_never_share_a_job
            callers_that_add_at_once_add_one_job
            outcomes_sent_at_once_count_once
            delete_during_a_claim_removes_the_job_or_leaves_a_pending_command;
        moves:
            every_legal_move_ends_where_the_table_says
            command_that_is_no_legal_move_changes_nothing
            random_walks_follow_the_table;
    } };
}
