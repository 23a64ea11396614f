-- The notifications that are not delivered yet, one row for each of their targets. DUE_AT is the time of the next attempt, of an overdue
-- job its deadline; all times are milliseconds since 1970. No foreign keys, because tools that delete executions do not know this table.
CREATE TABLE IF NOT EXISTS BATCH_NOTIFICATION (
    NOTIFICATION_ID VARCHAR(32) NOT NULL PRIMARY KEY,
    TARGET VARCHAR(100) NOT NULL,
    EVENT VARCHAR(20) NOT NULL,
    JOB_NAME VARCHAR(100) NOT NULL,
    JOB_INSTANCE_ID INTEGER NOT NULL,
    JOB_EXECUTION_ID INTEGER NOT NULL,
    DETAIL TEXT NOT NULL,
    CREATED_AT INTEGER NOT NULL,
    DUE_AT INTEGER NOT NULL,
    ATTEMPTS INTEGER NOT NULL,
    LAST_ERROR TEXT
);
CREATE INDEX IF NOT EXISTS BATCH_NOTIFICATION_IX ON BATCH_NOTIFICATION (TARGET, DUE_AT);
