-- Which worker process runs a partition, and until when; no row for partitions that run in the process of their job. No
-- foreign key: tools that delete executions know nothing of this table.
CREATE TABLE IF NOT EXISTS BATCH_PARTITION_LEASE (
    STEP_EXECUTION_ID INTEGER NOT NULL PRIMARY KEY,
    JOB_EXECUTION_ID INTEGER NOT NULL,
    OWNER VARCHAR(250) NOT NULL,
    EXPIRES_AT INTEGER NOT NULL,
    CLAIMS INTEGER NOT NULL
);
