-- Spring Batch 4.1: Oracle's columns count characters. Those of this database always did.
-- Sequence tables used to have one column; the second one prevents a second row.
SET @statement = (
    SELECT IF(COUNT(*) = 0,
        'ALTER TABLE BATCH_STEP_EXECUTION_SEQ ADD COLUMN UNIQUE_KEY CHAR(1) NOT NULL DEFAULT ''0'', ADD UNIQUE UNIQUE_KEY_UN (UNIQUE_KEY)',
        'DO 0')
    FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'BATCH_STEP_EXECUTION_SEQ' AND COLUMN_NAME = 'UNIQUE_KEY');
PREPARE add_key FROM @statement;
EXECUTE add_key;
SET @statement = (
    SELECT IF(COUNT(*) = 0,
        'ALTER TABLE BATCH_JOB_EXECUTION_SEQ ADD COLUMN UNIQUE_KEY CHAR(1) NOT NULL DEFAULT ''0'', ADD UNIQUE UNIQUE_KEY_UN (UNIQUE_KEY)',
        'DO 0')
    FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'BATCH_JOB_EXECUTION_SEQ' AND COLUMN_NAME = 'UNIQUE_KEY');
PREPARE add_key FROM @statement;
EXECUTE add_key;
SET @statement = (
    SELECT IF(COUNT(*) = 0,
        'ALTER TABLE BATCH_JOB_SEQ ADD COLUMN UNIQUE_KEY CHAR(1) NOT NULL DEFAULT ''0'', ADD UNIQUE UNIQUE_KEY_UN (UNIQUE_KEY)',
        'DO 0')
    FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'BATCH_JOB_SEQ' AND COLUMN_NAME = 'UNIQUE_KEY');
PREPARE add_key FROM @statement;
EXECUTE add_key;
DEALLOCATE PREPARE add_key;
