-- The turns of jobs whose `batch.job.concurrency` is `one` or `queue`: IS_TAKEN is 1 for the execution that may run, and NULL for those
-- that wait, in the order of their ids. The next execution removes the rows of those that have ended. No
-- foreign keys, because tools that delete executions do not know this table.
CREATE TABLE IF NOT EXISTS BATCH_JOB_TURN (
    JOB_EXECUTION_ID BIGINT NOT NULL PRIMARY KEY,
    JOB_NAME VARCHAR(100) NOT NULL,
    IS_TAKEN SMALLINT,
    constraint JOB_TURN_UN unique (JOB_NAME, IS_TAKEN)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
