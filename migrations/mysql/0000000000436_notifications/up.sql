-- The notifications that are not delivered yet, one row for each of their targets. DUE_AT is the time of the next attempt, of an overdue
-- job its deadline; all times are milliseconds since 1970. No foreign keys, because tools that delete executions do not know this table.
CREATE TABLE IF NOT EXISTS BATCH_NOTIFICATION (
    NOTIFICATION_ID VARCHAR(32) NOT NULL PRIMARY KEY,
    TARGET VARCHAR(100) NOT NULL,
    EVENT VARCHAR(20) NOT NULL,
    JOB_NAME VARCHAR(100) NOT NULL,
    JOB_INSTANCE_ID BIGINT NOT NULL,
    JOB_EXECUTION_ID BIGINT NOT NULL,
    DETAIL LONGTEXT NOT NULL,
    CREATED_AT BIGINT NOT NULL,
    DUE_AT BIGINT NOT NULL,
    ATTEMPTS BIGINT NOT NULL,
    LAST_ERROR LONGTEXT,
    KEY BATCH_NOTIFICATION_IX (TARGET, DUE_AT),
    KEY BATCH_NOTIFICATION_INST_IX (JOB_INSTANCE_ID)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
