//! The tables on SQLite. TIMESTAMP columns hold milliseconds since 1970, as Spring Batch's SQLite driver writes them.

super::super::schema::tables! {
    BigInt:
    "BATCH_JOB_INSTANCE",
    "BATCH_JOB_EXECUTION",
    "BATCH_JOB_EXECUTION_PARAMS",
    "BATCH_STEP_EXECUTION",
    "BATCH_STEP_EXECUTION_CONTEXT",
    "BATCH_JOB_EXECUTION_CONTEXT",
    "BATCH_JOB_INSTANCE_LEASE",
    "BATCH_PARTITION_LEASE",
    "BATCH_PARTITION_TICKET",
    "BATCH_PARTITION_REPORT",
    "BATCH_WORKER",
    "BATCH_LAUNCH",
    "BATCH_JOB_TURN",
    "BATCH_NOTIFICATION",
}

diesel::table! { batch_job_seq (id) { id -> BigInt, } }
diesel::table! { batch_job_instance_seq (id) { id -> BigInt, } }
diesel::table! { batch_job_execution_seq (id) { id -> BigInt, } }
diesel::table! { batch_step_execution_seq (id) { id -> BigInt, } }
