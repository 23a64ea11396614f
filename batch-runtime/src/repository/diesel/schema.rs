//! The tables as diesel sees them. SQLite does not tell upper from lower case in names.
//! TIMESTAMP columns hold milliseconds since 1970, as Spring Batch's SQLite driver writes them.

use diesel::table;

table! {
    batch_job_instance (job_instance_id) {
        job_instance_id -> BigInt,
        version -> Nullable<BigInt>,
        job_name -> Text,
        job_key -> Text,
    }
}

table! {
    batch_job_execution (job_execution_id) {
        job_execution_id -> BigInt,
        version -> Nullable<BigInt>,
        job_instance_id -> BigInt,
        create_time -> BigInt,
        start_time -> Nullable<BigInt>,
        end_time -> Nullable<BigInt>,
        status -> Nullable<Text>,
        exit_code -> Nullable<Text>,
        exit_message -> Nullable<Text>,
        last_updated -> Nullable<BigInt>,
        job_configuration_location -> Nullable<Text>,
    }
}

table! {
    // The table has no primary key; diesel wants one declared.
    batch_job_execution_params (job_execution_id, key_name) {
        job_execution_id -> BigInt,
        type_cd -> Text,
        key_name -> Text,
        string_val -> Nullable<Text>,
        date_val -> Nullable<BigInt>,
        long_val -> Nullable<BigInt>,
        double_val -> Nullable<Double>,
        identifying -> Text,
    }
}

table! {
    batch_step_execution (step_execution_id) {
        step_execution_id -> BigInt,
        version -> BigInt,
        step_name -> Text,
        job_execution_id -> BigInt,
        start_time -> BigInt,
        end_time -> Nullable<BigInt>,
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
        last_updated -> Nullable<BigInt>,
    }
}

table! {
    batch_step_execution_context (step_execution_id) {
        step_execution_id -> BigInt,
        short_context -> Text,
        serialized_context -> Nullable<Text>,
    }
}

table! {
    batch_job_execution_context (job_execution_id) {
        job_execution_id -> BigInt,
        short_context -> Text,
        serialized_context -> Nullable<Text>,
    }
}

table! {
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

table! { batch_job_seq (id) { id -> BigInt, } }
table! { batch_job_execution_seq (id) { id -> BigInt, } }
table! { batch_step_execution_seq (id) { id -> BigInt, } }

diesel::allow_tables_to_appear_in_same_query!(batch_job_instance, batch_job_execution, batch_step_execution);
diesel::joinable!(batch_job_execution -> batch_job_instance (job_instance_id));
diesel::joinable!(batch_step_execution -> batch_job_execution (job_execution_id));
