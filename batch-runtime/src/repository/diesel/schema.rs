//! The tables as diesel sees them. diesel quotes names, so they are in lower case for PostgreSQL and in upper case
//! for MySQL, as created; SQLite ignores the case.

macro_rules! tables {
    (
        $Time:ident:
        $batch_job_instance:tt,
        $batch_job_execution:tt,
        $batch_job_execution_params:tt,
        $batch_step_execution:tt,
        $batch_step_execution_context:tt,
        $batch_job_execution_context:tt,
        $batch_job_instance_lease:tt,
        $batch_partition_lease:tt,
    ) => {
        diesel::table! {
            use diesel::sql_types::*;

            #[sql_name = $batch_job_instance]
            batch_job_instance (job_instance_id) {
                job_instance_id -> BigInt,
                version -> Nullable<BigInt>,
                job_name -> Text,
                job_key -> Text,
            }
        }

        diesel::table! {
            use diesel::sql_types::*;

            #[sql_name = $batch_job_execution]
            batch_job_execution (job_execution_id) {
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
            use diesel::sql_types::*;

            // diesel requires a primary key, which the table lacks.
            #[sql_name = $batch_job_execution_params]
            batch_job_execution_params (job_execution_id, key_name) {
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
            use diesel::sql_types::*;

            #[sql_name = $batch_step_execution]
            batch_step_execution (step_execution_id) {
                step_execution_id -> BigInt,
                version -> BigInt,
                step_name -> Text,
                job_execution_id -> BigInt,
                start_time -> $Time,
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
            use diesel::sql_types::*;

            #[sql_name = $batch_step_execution_context]
            batch_step_execution_context (step_execution_id) {
                step_execution_id -> BigInt,
                short_context -> Text,
                serialized_context -> Nullable<Text>,
            }
        }

        diesel::table! {
            use diesel::sql_types::*;

            #[sql_name = $batch_job_execution_context]
            batch_job_execution_context (job_execution_id) {
                job_execution_id -> BigInt,
                short_context -> Text,
                serialized_context -> Nullable<Text>,
            }
        }

        diesel::table! {
            use diesel::sql_types::*;

            #[sql_name = $batch_job_instance_lease]
            batch_job_instance_lease (job_instance_id) {
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
            use diesel::sql_types::*;

            #[sql_name = $batch_partition_lease]
            batch_partition_lease (step_execution_id) {
                step_execution_id -> BigInt,
                job_execution_id -> BigInt,
                owner -> Text,
                expires_at -> BigInt,
                claims -> BigInt,
            }
        }

        diesel::allow_tables_to_appear_in_same_query!(batch_job_instance, batch_job_execution, batch_step_execution);
        diesel::joinable!(batch_job_execution -> batch_job_instance (job_instance_id));
        diesel::joinable!(batch_step_execution -> batch_job_execution (job_execution_id));
    };
}

pub(super) use tables;
