//! The tables as diesel sees them. diesel quotes names, so they are in lower case for PostgreSQL and in upper case
//! for MySQL, as created; SQLite ignores the case.

macro_rules! tables {
    (
        $Time:ident:
        $job_instance:tt,
        $job_execution:tt,
        $job_params:tt,
        $step_execution:tt,
        $step_context:tt,
        $job_context:tt,
        $instance_lease:tt,
        $partition_lease:tt,
        $partition_ticket:tt,
        $partition_report:tt,
        $worker:tt,
        $launch:tt,
        $turn:tt,
        $notification:tt,
    ) => {
        diesel::table! {
            #[sql_name = $job_instance]
            job_instance (job_instance_id) {
                job_instance_id -> BigInt,
                version -> Nullable<BigInt>,
                job_name -> Text,
                job_key -> Text,
            }
        }

        diesel::table! {
            #[sql_name = $job_execution]
            job_execution (job_execution_id) {
                job_execution_id -> BigInt,
                version -> Nullable<BigInt>,
                job_instance_id -> BigInt,
                create_time -> $Time,
                start_time -> Nullable<$Time>,
                end_time -> Nullable<$Time>,
                status -> Nullable<Text>,
                exit_code -> Nullable<Text>,
                exit_message -> Nullable<Text>,
                last_updated -> Nullable<$Time>,
                job_configuration_location -> Nullable<Text>,
            }
        }

        diesel::table! {
            // diesel requires a primary key, which the table lacks.
            #[sql_name = $job_params]
            job_params (job_execution_id, key_name) {
                job_execution_id -> BigInt,
                type_cd -> Text,
                key_name -> Text,
                string_val -> Nullable<Text>,
                date_val -> Nullable<$Time>,
                long_val -> Nullable<BigInt>,
                double_val -> Nullable<Double>,
                identifying -> Text,
            }
        }

        diesel::table! {
            #[sql_name = $step_execution]
            step_execution (step_execution_id) {
                step_execution_id -> BigInt,
                version -> BigInt,
                step_name -> Text,
                job_execution_id -> BigInt,
                start_time -> Nullable<$Time>,
                end_time -> Nullable<$Time>,
                status -> Nullable<Text>,
                commit_count -> Nullable<BigInt>,
                read_count -> Nullable<BigInt>,
                filter_count -> Nullable<BigInt>,
                write_count -> Nullable<BigInt>,
                read_skip_count -> Nullable<BigInt>,
                write_skip_count -> Nullable<BigInt>,
                process_skip_count -> Nullable<BigInt>,
                rollback_count -> Nullable<BigInt>,
                exit_code -> Nullable<Text>,
                exit_message -> Nullable<Text>,
                last_updated -> Nullable<$Time>,
            }
        }

        diesel::table! {
            // In the layouts of Spring Batch 5 and 6.
            #[sql_name = $job_params]
            typed_params (job_execution_id, parameter_name) {
                job_execution_id -> BigInt,
                parameter_name -> Text,
                parameter_type -> Text,
                parameter_value -> Nullable<Text>,
                identifying -> Text,
            }
        }

        diesel::table! {
            // The same in the layouts of Spring Batch 5 and 6, for inserts.
            #[sql_name = $step_execution]
            created_step (step_execution_id) {
                step_execution_id -> BigInt,
                version -> BigInt,
                step_name -> Text,
                job_execution_id -> BigInt,
                create_time -> $Time,
                start_time -> Nullable<$Time>,
                end_time -> Nullable<$Time>,
                status -> Nullable<Text>,
                commit_count -> Nullable<BigInt>,
                read_count -> Nullable<BigInt>,
                filter_count -> Nullable<BigInt>,
                write_count -> Nullable<BigInt>,
                read_skip_count -> Nullable<BigInt>,
                write_skip_count -> Nullable<BigInt>,
                process_skip_count -> Nullable<BigInt>,
                rollback_count -> Nullable<BigInt>,
                exit_code -> Nullable<Text>,
                exit_message -> Nullable<Text>,
                last_updated -> Nullable<$Time>,
            }
        }

        diesel::table! {
            #[sql_name = $step_context]
            step_context (step_execution_id) {
                step_execution_id -> BigInt,
                short_context -> Text,
                serialized_context -> Nullable<Text>,
            }
        }

        diesel::table! {
            #[sql_name = $job_context]
            job_context (job_execution_id) {
                job_execution_id -> BigInt,
                short_context -> Text,
                serialized_context -> Nullable<Text>,
            }
        }

        diesel::table! {
            #[sql_name = $instance_lease]
            instance_lease (job_instance_id) {
                job_instance_id -> BigInt,
                job_execution_id -> BigInt,
                owner -> Text,
                fence -> BigInt,
                expires_at -> BigInt,
                takeovers -> BigInt,
                last_checkpoint_version -> BigInt,
            }
        }

        diesel::table! {
            #[sql_name = $partition_lease]
            partition_lease (step_execution_id) {
                step_execution_id -> BigInt,
                job_execution_id -> BigInt,
                owner -> Text,
                expires_at -> BigInt,
                claims -> BigInt,
            }
        }

        diesel::table! {
            #[sql_name = $partition_ticket]
            partition_ticket (step_execution_id) {
                step_execution_id -> BigInt,
                job_execution_id -> BigInt,
                queue_name -> Text,
                attempt -> BigInt,
                fingerprint -> Text,
                available_at -> BigInt,
            }
        }

        diesel::table! {
            #[sql_name = $partition_report]
            partition_report (step_execution_id, claim, report_number) {
                step_execution_id -> BigInt,
                claim -> BigInt,
                report_number -> BigInt,
                job_execution_id -> BigInt,
                report -> Text,
            }
        }

        diesel::table! {
            #[sql_name = $worker]
            worker (worker_name) {
                worker_name -> Text,
                queue_name -> Text,
                slots -> BigInt,
                runtime_version -> Text,
                status -> Text,
                started_at -> BigInt,
                expires_at -> BigInt,
            }
        }

        diesel::table! {
            #[sql_name = $launch]
            launch (launch_id) {
                launch_id -> BigInt,
                job_name -> Text,
                job_key -> Text,
                queue_name -> Text,
                fingerprint -> Text,
                parameters -> Text,
                status -> Text,
                worker_name -> Nullable<Text>,
                job_execution_id -> Nullable<BigInt>,
                message -> Text,
                available_at -> BigInt,
                submitted_at -> BigInt,
                changed_at -> BigInt,
                is_open -> Nullable<SmallInt>,
            }
        }

        diesel::table! {
            #[sql_name = $turn]
            turn (job_execution_id) {
                job_execution_id -> BigInt,
                job_name -> Text,
                is_taken -> Nullable<SmallInt>,
            }
        }

        diesel::table! {
            #[sql_name = $notification]
            notification (notification_id) {
                notification_id -> Text,
                target -> Text,
                event -> Text,
                job_name -> Text,
                job_instance_id -> BigInt,
                job_execution_id -> BigInt,
                detail -> Text,
                created_at -> BigInt,
                due_at -> BigInt,
                attempts -> BigInt,
                last_error -> Nullable<Text>,
            }
        }

        diesel::allow_tables_to_appear_in_same_query!(
            job_instance,
            job_execution,
            step_execution,
            step_context,
            instance_lease,
            turn
        );
        diesel::joinable!(turn -> job_execution (job_execution_id));
        diesel::joinable!(job_execution -> job_instance (job_instance_id));
        diesel::joinable!(step_execution -> job_execution (job_execution_id));
    };
}

pub(super) use tables;
