-- The lease of a partition: the worker process that runs it, and its expiry. Partitions that run in the process of their job
-- have no row. No foreign key, because tools that delete executions do not know this table.
CREATE TABLE IF NOT EXISTS BATCH_PARTITION_LEASE (
    STEP_EXECUTION_ID BIGINT NOT NULL PRIMARY KEY,
    JOB_EXECUTION_ID BIGINT NOT NULL,
    OWNER VARCHAR(250) NOT NULL,
    EXPIRES_AT BIGINT NOT NULL,
    CLAIMS BIGINT NOT NULL
);
