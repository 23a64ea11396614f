-- For the query before every step (recommended by A.10 of the schema's description). Not unique: a job of Spring Batch may run a step
-- several times in one execution.
SET @statement = (
    SELECT IF(COUNT(*) = 0,
        'ALTER TABLE BATCH_STEP_EXECUTION ADD INDEX BATCH_STEP_EXECUTION_STEP_IX (JOB_EXECUTION_ID, STEP_NAME)',
        'DO 0')
    FROM information_schema.STATISTICS
    WHERE TABLE_SCHEMA = DATABASE() AND INDEX_NAME = 'BATCH_STEP_EXECUTION_STEP_IX');
PREPARE make_index FROM @statement;
EXECUTE make_index;
-- The unique index of earlier versions of the lease's migration.
SET @statement = (
    SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE BATCH_STEP_EXECUTION DROP INDEX BATCH_STEP_EXECUTION_NAME_IX')
    FROM information_schema.STATISTICS
    WHERE TABLE_SCHEMA = DATABASE() AND INDEX_NAME = 'BATCH_STEP_EXECUTION_NAME_IX');
PREPARE make_index FROM @statement;
EXECUTE make_index;
DEALLOCATE PREPARE make_index;

-- The sequences of Spring Batch 2 are in MyISAM, which a crash can damage.
SET @statement = (
    SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE BATCH_STEP_EXECUTION_SEQ ENGINE = InnoDB')
    FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'BATCH_STEP_EXECUTION_SEQ' AND ENGINE <> 'InnoDB');
PREPARE convert_sequence FROM @statement;
EXECUTE convert_sequence;
SET @statement = (
    SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE BATCH_JOB_EXECUTION_SEQ ENGINE = InnoDB')
    FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'BATCH_JOB_EXECUTION_SEQ' AND ENGINE <> 'InnoDB');
PREPARE convert_sequence FROM @statement;
EXECUTE convert_sequence;
SET @statement = (
    SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE BATCH_JOB_SEQ ENGINE = InnoDB')
    FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'BATCH_JOB_SEQ' AND ENGINE <> 'InnoDB');
PREPARE convert_sequence FROM @statement;
EXECUTE convert_sequence;
DEALLOCATE PREPARE convert_sequence;
