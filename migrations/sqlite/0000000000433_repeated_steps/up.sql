-- For the query before every step (recommended by A.10 of the schema's description). Not unique: a job of Spring Batch may run a step
-- several times in one execution.
CREATE INDEX IF NOT EXISTS BATCH_STEP_EXECUTION_STEP_IX ON BATCH_STEP_EXECUTION (JOB_EXECUTION_ID, STEP_NAME);
-- The unique index of earlier versions of the lease's migration.
DROP INDEX IF EXISTS BATCH_STEP_EXECUTION_NAME_IX;
