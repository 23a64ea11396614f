-- When a step execution was created, since Spring Batch 5.
ALTER TABLE BATCH_STEP_EXECUTION ADD COLUMN CREATE_TIME TIMESTAMP;
