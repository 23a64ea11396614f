//! The tables on PostgreSQL.

super::super::schema::tables! {
    Timestamp:
    "batch_job_instance",
    "batch_job_execution",
    "batch_job_execution_params",
    "batch_step_execution",
    "batch_step_execution_context",
    "batch_job_execution_context",
    "batch_job_instance_lease",
    "batch_partition_lease",
    "batch_partition_ticket",
    "batch_partition_report",
    "batch_worker",
    "batch_launch",
    "batch_job_turn",
    "batch_notification",
}
