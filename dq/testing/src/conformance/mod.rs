//! The behaviours of a store: one list of tests, derived from the rules of the protocol, that every store must pass.
//!
//! A behaviour sees a store only as nodes and producers do, through [`Store`](dq::store::Store), and moves the store's clock
//! through its [`StoreFixture`]. It does not know how the store keeps anything. No store skips a behaviour: what one store
//! cannot show is not a behaviour. A bug that is found in one store becomes a behaviour of all.
//!
//! ```text
//! mod memory {
//!     dq_testing::store_conformance!(async { MemoryFixture::new() });
//! }
//! ```
//!
//! This makes one `#[tokio::test]` of each behaviour. The expression is a future of a new [`StoreFixture`] with an empty
//! store. The calling crate needs tokio with `macros` and `rt`. [`BEHAVIOURS`] lists the names, and the table in
//! `docs/internals/requirements.md` names the rule that each behaviour shows.
//!
//! After every step of a behaviour, each job must be in exactly one place, and pages, counts and queries by id must agree
//! about it. At the end of the behaviour the store's own audit must find no difference, and exactly the nodes that hold jobs
//! must have a lease ([`Topic::audit`], [`Topic::close`]).
//!
//! The public modules are the behaviours, grouped by step or rule. The private ones are what they are written with:
//! `topic` (the topic under test and the steps of its nodes), `producer` (adds and commands), `inspect` (queries and the
//! audit), `subscriber` (signals), `copies` (exports and imports), and `events` (brings a job into a state or makes an event of the state table happen).

mod copies;
mod events;
mod fixture;
mod inspect;
mod producer;
mod subscriber;
mod topic;

pub mod adds;
pub mod audit;
pub mod broadcasts;
pub mod bytes;
pub mod commands;
pub mod duplicates;
pub mod exports;
pub mod far;
pub mod fenced;
pub mod imports;
pub mod leases;
pub mod lookahead;
pub mod moves;
pub mod notes;
pub mod numbered;
pub mod parked;
pub mod pending;
pub mod queries;
pub mod reclaim;
pub mod reconcile;
pub mod roles;
pub mod settle;
pub mod ticks;
pub mod together;
pub mod transfer;

pub use fixture::StoreFixture;
pub use topic::Topic;

/// The names of all behaviours, in the order of the list.
pub const BEHAVIOURS: &[&str] = crate::store_conformance! { @each names () };

/// Runs the behaviours whose names are wanted, one after the other, each on a fixture of its own that `open` makes.
pub async fn run_all<F: StoreFixture>(open: impl AsyncFn() -> F, wanted: impl Fn(&str) -> bool) {
    crate::store_conformance! { @each run (open wanted) }
}

/// Makes a test of every behaviour of [`conformance`](crate::conformance) for one store.
///
/// The argument is an expression of a future of a [`StoreFixture`](crate::conformance::StoreFixture); each test evaluates
/// it once.
#[macro_export]
macro_rules! store_conformance {
    (@tests ($open:expr) $($group:ident: $($behaviour:ident)+;)+) => { $($(
        #[tokio::test]
        async fn $behaviour() {
            let topic = $crate::conformance::Topic::open($open.await, ::core::stringify!($behaviour)).await;
            $crate::conformance::$group::$behaviour(&topic).await;
            topic.close().await;
        }
    )+)+ };
    (@run ($open:ident $wanted:ident) $($group:ident: $($behaviour:ident)+;)+) => { $($(
        if $wanted(::core::stringify!($behaviour)) {
            let topic = $crate::conformance::Topic::open($open().await, ::core::stringify!($behaviour)).await;
            $crate::conformance::$group::$behaviour(&topic).await;
            topic.close().await;
        }
    )+)+ };
    (@names () $($group:ident: $($behaviour:ident)+;)+) => { &[$($(::core::stringify!($behaviour),)+)+] };
    (@each $what:ident $with:tt) => { $crate::store_conformance! { @$what $with
        adds:
            added_job_waits_with_its_record
            job_without_a_delay_is_due_at_once
            due_time_rounds_up_and_now_rounds_down
            past_due_time_becomes_now
            batch_is_answered_job_by_job
            id_repeated_in_a_batch_is_added_once
            generated_ids_are_added
            expiry_is_stored_as_a_time
            expired_job_is_claimed
            metadata_of_an_added_job_is_kept
            unreadable_record_does_not_affect_its_batch
            payload_of_any_bytes_comes_back
            id_can_be_any_text
            add_over_the_limit_changes_nothing
            topics_are_independent
            apps_are_independent
            topics_that_hold_something_are_listed_in_order
            topic_can_be_opened_again;
        duplicates:
            reject_leaves_a_known_job
            keep_leaves_a_known_job
            replace_takes_the_place_of_a_job_that_is_not_running
            replacement_brings_its_own_due_time
            done_job_does_not_count_as_existing
            job_added_over_a_done_one_outlives_the_old_retention
            replaced_job_leaves_its_old_place
            replacement_of_a_running_job_waits
            replacement_is_due_counted_from_its_add
            later_replacement_takes_the_place_of_an_earlier_one
            reject_and_keep_leave_a_waiting_replacement
            replacement_starts_afresh
            replacement_is_not_charged_crashes_of_the_old_run
            id_is_free_after_its_end
            replacement_has_its_own_retention;
        numbered:
            repeated_add_does_nothing
            repeated_answer_is_the_first_one
            repeated_command_does_nothing
            number_below_the_highest_is_late
            late_command_removes_nothing
            adds_and_commands_share_their_numbers
            sixteen_answers_are_kept
            numbers_belong_to_one_producer
            call_is_repeated_over_a_new_handle
            answers_are_kept_for_an_hour
            numbers_may_leave_gaps
            repeated_requeue_does_nothing
            calls_are_executed_in_their_order
            dropped_answer_does_not_stop_the_request;
        transfer:
            job_is_not_claimed_before_it_is_due
            claim_has_what_a_run_needs
            jobs_are_claimed_in_the_order_they_are_due
            returned_job_competes_by_its_due_time
            transfer_is_bounded_and_reports_more
            transfer_of_everything_due_reports_no_more
            claimed_job_is_not_claimed_again
            fence_is_the_clock_of_the_transfer
            fences_of_two_transfers_differ
            fence_grows_when_the_clock_jumps_back
            wrong_sequence_number_claims_and_renews_nothing
            unknown_node_must_reconcile_first
            empty_transfer_takes_a_sequence_number
            transfer_that_arrives_twice_claims_once
            sequence_numbers_belong_to_one_node
            sequence_number_is_kept_for_a_day
            transfer_takes_delayed_jobs_only
            transfer_returns_the_earliest_foreign_lease
            due_times_may_be_years_away
            clock_that_jumps_back_makes_nothing_early
            transfer_over_the_limit_changes_nothing;
        settle:
            acked_job_is_gone
            acked_job_is_kept_for_its_retention
            rejoined_job_is_due_at_the_requested_time
            rejoin_at_a_past_time_takes_the_original_delay
            rejoined_job_keeps_its_record
            retried_job_waits_with_its_new_metadata
            retry_is_due_after_the_exact_backoff
            rolled_back_job_keeps_its_due_time
            parked_job_keeps_the_fence_of_its_run
            dead_job_keeps_its_cause
            dropped_job_is_gone
            parking_fence_of_new_metadata_is_ignored
            stale_token_settles_nothing
            outcome_of_a_reclaimed_run_is_stale
            repeated_outcome_is_stale
            stale_outcome_does_not_hold_back_the_others
            job_named_twice_is_settled_once
            outcome_under_an_expired_lease_counts
            outcome_under_a_wrong_sequence_number_counts
            settled_outcome_clears_the_crash_count
            settle_over_the_limit_changes_nothing;
        ticks:
            tick_adds_its_jobs_and_waits_for_the_next
            tick_of_another_run_adds_nothing
            tick_of_a_dead_node_is_claimed_again
            tick_leaves_known_jobs
            tick_adds_nothing_until_the_last_job_has_ended
            tick_sees_what_its_request_has_ended
            last_tick_removes_the_schedule
            next_tick_is_later_than_this_one
            tick_obeys_a_pending_command
            jobs_of_a_tick_go_where_they_should
            tick_keeps_large_records_and_retentions
            tick_over_the_limit_changes_nothing;
        leases:
            claim_writes_the_lease
            node_without_jobs_has_no_lease
            lease_goes_with_the_last_row
            steps_that_name_the_sequence_number_renew
            steps_that_name_another_sequence_number_renew_nothing
            unresponsive_node_cannot_keep_what_it_claimed
            renew_never_creates_a_lease
            renewal_may_shorten_a_lease
            lease_far_ahead_is_cut
            lease_is_at_most_five_minutes
            every_answer_carries_the_lease_status
            release_without_rows_leaves_no_lease
            rows_of_a_released_node_are_free_at_once
            nothing_is_claimed_for_a_released_node
            release_accepts_any_sequence_number
            lease_ends_at_its_millisecond;
        reconcile:
            reconcile_takes_a_sequence_number_beyond_both
            reconcile_returns_every_row
            reconcile_pages_through_the_rows
            later_page_must_name_the_sequence_number
            page_continues_after_a_row_that_is_gone
            reconcile_renews_nothing
            jobs_of_a_lost_answer_are_found_and_given_back
            transfer_from_before_a_reconcile_claims_nothing
            reconcile_over_the_limit_changes_nothing;
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
            exhaustion_survives_a_crash
            reclaim_over_the_limit_changes_nothing;
        notes:
            noted_job_stays_running
            stale_token_notes_nothing
            isolate_answers_for_each_run
            late_isolate_notes_nothing
            isolate_over_the_limit_changes_nothing
            nothing_starts_under_an_unfenced_end
            nothing_starts_under_an_end_with_a_replacement
            handlers_start_under_a_fenced_end
            handlers_start_under_a_replacement
            notes_end_with_the_job;
        pending:
            running_job_gets_a_pending_command
            end_applies_on_every_way_out
            acked_running_job_is_kept_as_done
            replacement_takes_the_place_on_every_way_out
            ack_that_comes_before_the_park_counts
            add_under_an_end_becomes_the_replacement
            second_add_under_an_end_finds_the_first
            delete_drops_the_waiting_replacement
            ack_keeps_the_waiting_replacement
            delete_after_delete_and_add_drops_the_new_job
            delete_overrides_an_earlier_ack
            ack_does_not_weaken_an_earlier_delete
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
            fenced_ack_that_comes_before_the_park_counts
            reject_under_a_fenced_end_finds_the_job
            keep_under_a_fenced_end_counts_if_the_end_applies
            keep_under_a_fenced_end_is_dropped_if_the_end_does_not_apply
            replace_under_a_fenced_end_always_counts
            unfenced_end_overrides_a_fenced_one
            fenced_ack_does_not_weaken_an_end
            unfenced_ack_makes_a_conditional_replacement_unconditional
            fenced_ack_keeps_the_waiting_replacement
            ack_of_the_later_run_counts
            fenced_requeue_leaves_a_dead_job;
        commands:
            deleted_job_is_returned
            unknown_job_is_not_found
            deleted_job_is_not_claimed
            ack_ends_a_waiting_or_parked_job
            requeued_dead_job_starts_afresh
            requeued_unacked_job_keeps_its_attempts_and_expiry
            requeue_clears_crashes
            commands_are_answered_one_by_one
            command_over_the_limit_changes_nothing;
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
            outcome_of_a_reclaimed_aged_job_is_stale
            dead_jobs_are_pruned_by_age
            dead_jobs_are_pruned_by_number
            done_jobs_are_pruned_after_their_retention
            pruning_is_bounded
            sweep_over_the_limit_changes_nothing;
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
            publishing_is_bounded
            publisher_sleeps_until_the_next_broadcast
            earlier_broadcast_is_signalled
            earlier_broadcast_is_signalled_to_the_publisher
            replacement_for_both_adds_a_job_and_a_broadcast
            delete_of_a_running_job_removes_its_broadcast
            publish_over_the_limit_changes_nothing;
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
            repeated_import_does_nothing
            imported_record_comes_back
            import_over_the_limit_changes_nothing;
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
    ($open:expr) => { $crate::store_conformance! { @each tests ($open) } };
}
