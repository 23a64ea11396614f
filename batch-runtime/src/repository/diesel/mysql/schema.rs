//! The tables on MySQL and MariaDB, where names of tables are case-sensitive.

super::super::schema::tables! {
    Datetime:
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
}
