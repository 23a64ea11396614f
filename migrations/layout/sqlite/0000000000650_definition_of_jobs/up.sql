-- The file of a job, which the tables of Spring Batch have up to version 4.3 and ignore afterwards.
ALTER TABLE BATCH_JOB_EXECUTION ADD COLUMN JOB_CONFIGURATION_LOCATION VARCHAR(2500) NULL;
