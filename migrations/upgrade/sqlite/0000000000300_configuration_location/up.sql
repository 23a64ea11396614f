-- Spring Batch 3.0, which came without a script. SQLite does not mind how wide EXIT_CODE is.
ALTER TABLE BATCH_JOB_EXECUTION ADD COLUMN JOB_CONFIGURATION_LOCATION VARCHAR(2500) NULL;
