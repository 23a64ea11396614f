PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE __diesel_schema_migrations (
       version VARCHAR(50) PRIMARY KEY NOT NULL,
       run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO __diesel_schema_migrations VALUES('0000000000430','2026-11-30 13:34:01');
INSERT INTO __diesel_schema_migrations VALUES('0000000000431','2026-11-30 13:34:01');
INSERT INTO __diesel_schema_migrations VALUES('0000000000432','2026-11-30 13:34:01');
INSERT INTO __diesel_schema_migrations VALUES('0000000000433','2026-11-30 13:34:01');
INSERT INTO __diesel_schema_migrations VALUES('0000000000434','2026-11-30 13:34:01');
INSERT INTO __diesel_schema_migrations VALUES('0000000000435','2026-11-30 13:34:01');
INSERT INTO __diesel_schema_migrations VALUES('0000000000436','2026-11-30 13:34:01');
CREATE TABLE BATCH_JOB_INSTANCE (
    JOB_INSTANCE_ID INTEGER PRIMARY KEY AUTOINCREMENT,
    VERSION INTEGER,
    JOB_NAME VARCHAR(100) NOT NULL,
    JOB_KEY VARCHAR(32) NOT NULL,
    constraint JOB_INST_UN unique (JOB_NAME, JOB_KEY)
);
INSERT INTO BATCH_JOB_INSTANCE VALUES(1,0,'delimited','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(2,0,'fixed','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(3,0,'lines','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(4,0,'array','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(5,0,'pattern','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(6,0,'query','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(7,0,'groups','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(8,0,'parts','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(9,0,'ledger','d41d8cd98f00b204e9800998ecf8427e');
INSERT INTO BATCH_JOB_INSTANCE VALUES(10,0,'rejects','d41d8cd98f00b204e9800998ecf8427e');
CREATE TABLE BATCH_JOB_EXECUTION (
    JOB_EXECUTION_ID INTEGER PRIMARY KEY AUTOINCREMENT,
    VERSION INTEGER,
    JOB_INSTANCE_ID INTEGER NOT NULL,
    CREATE_TIME TIMESTAMP NOT NULL,
    START_TIME TIMESTAMP DEFAULT NULL,
    END_TIME TIMESTAMP DEFAULT NULL,
    STATUS VARCHAR(10),
    EXIT_CODE VARCHAR(2500),
    EXIT_MESSAGE VARCHAR(2500),
    LAST_UPDATED TIMESTAMP,
    JOB_CONFIGURATION_LOCATION VARCHAR(2500) NULL,
    constraint JOB_INSTANCE_EXECUTION_FK foreign key (JOB_INSTANCE_ID)
    references BATCH_JOB_INSTANCE(JOB_INSTANCE_ID)
);
INSERT INTO BATCH_JOB_EXECUTION VALUES(1,2,1,1796045645952,1796045645964,1796045645999,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows-2.csv:5','\n',char(10)),1796045645999,'./delimited.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(2,2,2,1796045646414,1796045646977,1796045647057,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.txt:7','\n',char(10)),1796045647057,'./fixed.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(3,2,3,1796045647551,1796045647610,1796045647740,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.jsonl:7','\n',char(10)),1796045647740,'./lines.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(4,2,4,1796045647912,1796045647919,1796045647950,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.json:7','\n',char(10)),1796045647950,'./array.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(5,2,5,1796045648025,1796045648028,1796045648212,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.log:7','\n',char(10)),1796045648212,'./pattern.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(6,2,6,1796045648319,1796045648325,1796045648365,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7" in the record with `n` "7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up','\n',char(10)),1796045648365,'./query.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(7,2,7,1796045648442,1796045648447,1796045648471,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordGroupProcessor`\nat item 4 of `load`\nit is skippable, but the skip-limit of 0 is used up','\n',char(10)),1796045648471,'./groups.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(8,2,8,1796045648629,1796045648649,1796045648942,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 4 of `load:2`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows-2.csv:5\nin partition 2 of `load`','\n',char(10)),1796045648942,'./parts.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(9,2,9,1796045649118,1796045649129,1796045649160,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows-2.csv:5','\n',char(10)),1796045649160,'./ledger.xml');
INSERT INTO BATCH_JOB_EXECUTION VALUES(10,2,10,1796045649346,1796045649436,1796045649464,'FAILED','FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 1 is used up; most skips had a different cause, for example: in/short.csv:4: the row has 1 fields, but 2 are expected\nread from in/short.csv:8','\n',char(10)),1796045649464,'./rejects.xml');
CREATE TABLE BATCH_JOB_EXECUTION_PARAMS (
    JOB_EXECUTION_ID INTEGER NOT NULL,
    TYPE_CD VARCHAR(6) NOT NULL,
    KEY_NAME VARCHAR(100) NOT NULL,
    STRING_VAL VARCHAR(250),
    DATE_VAL TIMESTAMP DEFAULT NULL,
    LONG_VAL INTEGER,
    DOUBLE_VAL DOUBLE PRECISION,
    IDENTIFYING CHAR(1) NOT NULL,
    constraint JOB_EXEC_PARAMS_FK foreign key (JOB_EXECUTION_ID)
    references BATCH_JOB_EXECUTION(JOB_EXECUTION_ID)
);
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(1,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(2,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(3,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(4,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(5,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(6,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(7,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(8,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(9,'STRING','skips','0',0,0,0.0,'N');
INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES(10,'STRING','skips','1',0,0,0.0,'N');
CREATE TABLE BATCH_STEP_EXECUTION (
    STEP_EXECUTION_ID INTEGER PRIMARY KEY AUTOINCREMENT,
    VERSION INTEGER NOT NULL,
    STEP_NAME VARCHAR(100) NOT NULL,
    JOB_EXECUTION_ID INTEGER NOT NULL,
    START_TIME TIMESTAMP NOT NULL,
    END_TIME TIMESTAMP DEFAULT NULL,
    STATUS VARCHAR(10),
    COMMIT_COUNT INTEGER,
    READ_COUNT INTEGER,
    FILTER_COUNT INTEGER,
    WRITE_COUNT INTEGER,
    READ_SKIP_COUNT INTEGER,
    WRITE_SKIP_COUNT INTEGER,
    PROCESS_SKIP_COUNT INTEGER,
    ROLLBACK_COUNT INTEGER,
    EXIT_CODE VARCHAR(2500),
    EXIT_MESSAGE VARCHAR(2500),
    LAST_UPDATED TIMESTAMP,
    constraint JOB_EXECUTION_STEP_FK foreign key (JOB_EXECUTION_ID)
    references BATCH_JOB_EXECUTION(JOB_EXECUTION_ID)
);
INSERT INTO BATCH_STEP_EXECUTION VALUES(1,2,'first',1,1796045645967,1796045645979,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045645979);
INSERT INTO BATCH_STEP_EXECUTION VALUES(2,5,'load',1,1796045645980,1796045645985,'FAILED',3,6,0,6,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows-2.csv:5','\n',char(10)),1796045645985);
INSERT INTO BATCH_STEP_EXECUTION VALUES(3,2,'first',2,1796045646981,1796045647037,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045647037);
INSERT INTO BATCH_STEP_EXECUTION VALUES(4,5,'load',2,1796045647050,1796045647054,'FAILED',3,6,0,6,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.txt:7','\n',char(10)),1796045647054);
INSERT INTO BATCH_STEP_EXECUTION VALUES(5,2,'first',3,1796045647617,1796045647645,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045647645);
INSERT INTO BATCH_STEP_EXECUTION VALUES(6,5,'load',3,1796045647647,1796045647676,'FAILED',3,6,0,6,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.jsonl:7','\n',char(10)),1796045647676);
INSERT INTO BATCH_STEP_EXECUTION VALUES(7,2,'first',4,1796045647921,1796045647928,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045647928);
INSERT INTO BATCH_STEP_EXECUTION VALUES(8,5,'load',4,1796045647929,1796045647946,'FAILED',3,6,0,6,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.json:7','\n',char(10)),1796045647946);
INSERT INTO BATCH_STEP_EXECUTION VALUES(9,2,'first',5,1796045648030,1796045648041,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045648041);
INSERT INTO BATCH_STEP_EXECUTION VALUES(10,5,'load',5,1796045648042,1796045648211,'FAILED',3,6,0,6,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows.log:7','\n',char(10)),1796045648211);
INSERT INTO BATCH_STEP_EXECUTION VALUES(11,2,'first',6,1796045648330,1796045648333,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045648333);
INSERT INTO BATCH_STEP_EXECUTION VALUES(12,5,'load',6,1796045648335,1796045648365,'FAILED',3,6,0,6,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7" in the record with `n` "7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up','\n',char(10)),1796045648365);
INSERT INTO BATCH_STEP_EXECUTION VALUES(13,2,'first',7,1796045648448,1796045648455,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045648455);
INSERT INTO BATCH_STEP_EXECUTION VALUES(14,3,'load',7,1796045648458,1796045648470,'FAILED',1,2,0,2,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordGroupProcessor`\nat item 4 of `load`\nit is skippable, but the skip-limit of 0 is used up','\n',char(10)),1796045648470);
INSERT INTO BATCH_STEP_EXECUTION VALUES(15,2,'first',8,1796045648728,1796045648838,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045648838);
INSERT INTO BATCH_STEP_EXECUTION VALUES(16,2,'load',8,1796045648854,1796045648940,'FAILED',0,0,0,0,0,0,0,0,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 4 of `load:2`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows-2.csv:5\nin partition 2 of `load`','\n',char(10)),1796045648940);
INSERT INTO BATCH_STEP_EXECUTION VALUES(17,4,'load:1',8,1796045648888,1796045648937,'COMPLETED',2,3,0,3,0,0,0,0,'COMPLETED','',1796045648937);
INSERT INTO BATCH_STEP_EXECUTION VALUES(18,3,'load:2',8,1796045648887,1796045648928,'FAILED',1,2,0,2,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 4 of `load:2`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows-2.csv:5','\n',char(10)),1796045648928);
INSERT INTO BATCH_STEP_EXECUTION VALUES(19,2,'first',9,1796045649131,1796045649143,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045649143);
INSERT INTO BATCH_STEP_EXECUTION VALUES(20,6,'load',9,1796045649145,1796045649160,'FAILED',3,6,0,6,0,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 0 is used up\nread from in/rows-2.csv:5','\n',char(10)),1796045649160);
INSERT INTO BATCH_STEP_EXECUTION VALUES(21,2,'first',10,1796045649437,1796045649444,'COMPLETED',0,0,0,0,0,0,0,0,'COMPLETED','',1796045649444);
INSERT INTO BATCH_STEP_EXECUTION VALUES(22,4,'load',10,1796045649448,1796045649461,'FAILED',2,4,0,4,1,0,0,1,'FAILED',replace('field `id`: expected an integer, found "x7"\nthrown by #[process_item] of item processor `recordProcessor`\nat item 7 of `load`\nit is skippable, but the skip-limit of 1 is used up; most skips had a different cause, for example: in/short.csv:4: the row has 1 fields, but 2 are expected\nread from in/short.csv:8','\n',char(10)),1796045649461);
CREATE TABLE BATCH_STEP_EXECUTION_CONTEXT (
    STEP_EXECUTION_ID INTEGER NOT NULL PRIMARY KEY,
    SHORT_CONTEXT VARCHAR(2500) NOT NULL,
    SERIALIZED_CONTEXT CLOB,
    constraint STEP_EXEC_CTX_FK foreign key (STEP_EXECUTION_ID)
    references BATCH_STEP_EXECUTION(STEP_EXECUTION_ID)
);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(1,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(2,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":1,\"names\":1153653452,\"contents\":2132912357,\"found\":2,\"file\":{\"resource\":\"in/rows-2.csv\",\"byte\":32,\"line\":5,\"record\":3,\"fingerprint\":{\"size\":87,\"modified\":1700000000000,\"head\":1482495679}},\"items\":12}","batch.writer.checkpoint":"{\"output\":{\"file\":1,\"length\":56,\"items\":6,\"content\":2417505852},\"frame\":null,\"columns\":[\"id\",\"name\"],\"form\":1586755676}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(3,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(4,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":0,\"names\":0,\"contents\":0,\"found\":1,\"file\":{\"resource\":\"in/rows.txt\",\"byte\":78,\"line\":7,\"record\":6,\"fingerprint\":{\"size\":156,\"modified\":1700000000000,\"head\":512537072}},\"items\":12}","batch.writer.checkpoint":"{\"output\":{\"file\":1,\"length\":78,\"items\":6,\"content\":2576871598},\"frame\":null,\"form\":4268999853}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(5,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(6,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":0,\"names\":0,\"contents\":0,\"found\":1,\"file\":{\"resource\":\"in/rows.jsonl\",\"byte\":156,\"line\":7,\"record\":6,\"fingerprint\":{\"size\":319,\"modified\":1700000000000,\"head\":2935847972}},\"items\":12}","batch.writer.checkpoint":"{\"output\":{\"file\":1,\"length\":150,\"items\":6,\"content\":1093444678},\"frame\":null,\"form\":587837280}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(7,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(8,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":0,\"names\":0,\"contents\":0,\"found\":1,\"file\":{\"resource\":\"in/rows.json\",\"byte\":161,\"line\":6,\"record\":6,\"fingerprint\":{\"size\":332,\"modified\":1700000000000,\"head\":659146740}}}","batch.writer.checkpoint":"{\"output\":{\"file\":1,\"length\":192,\"items\":6,\"content\":1640852893},\"frame\":null,\"form\":2065996333}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(9,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(10,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":0,\"names\":0,\"contents\":0,\"found\":1,\"file\":{\"resource\":\"in/rows.log\",\"byte\":48,\"line\":7,\"record\":6,\"fingerprint\":{\"size\":103,\"modified\":1700000000000,\"head\":1344174967}},\"items\":12}","batch.writer.checkpoint":"{\"table\":\"written\",\"fields\":[\"id\",\"name\"]}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(11,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(12,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"rows\":6,\"key\":[{\"Int\":6}],\"of\":{\"key\":[\"n\"],\"query\":2631587907}}","batch.writer.checkpoint":"{\"output\":{\"file\":1,\"length\":70,\"items\":6,\"content\":1912852784},\"frame\":null,\"columns\":[\"n\",\"id\",\"name\"],\"form\":1586755676}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(13,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(14,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"next\":{\"files\":1,\"names\":1153653452,\"contents\":2132912357,\"found\":2,\"file\":{\"resource\":\"in/rows-2.csv\",\"byte\":16,\"line\":3,\"record\":1,\"fingerprint\":{\"size\":87,\"modified\":1700000000000,\"head\":1482495679}}},\"counts\":{\"read\":4,\"grouped\":4}}","batch.writer.checkpoint":"{\"inner\":{\"table\":\"written\",\"fields\":[\"id\",\"name\"]},\"written\":4}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(15,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(16,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(17,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":1,\"names\":1153653452,\"contents\":2132912357,\"found\":1,\"items\":3}","batch.writer.checkpoint":"{\"table\":\"written\",\"fields\":[\"id\",\"name\"]}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(18,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":0,\"names\":0,\"contents\":0,\"found\":1,\"file\":{\"resource\":\"in/rows-2.csv\",\"byte\":24,\"line\":4,\"record\":2,\"fingerprint\":{\"size\":87,\"modified\":1700000000000,\"head\":1482495679}},\"items\":9}","batch.writer.checkpoint":"{\"table\":\"written\",\"fields\":[\"id\",\"name\"]}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(19,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(20,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":1,\"names\":1153653452,\"contents\":2132912357,\"found\":2,\"file\":{\"resource\":\"in/rows-2.csv\",\"byte\":32,\"line\":5,\"record\":3,\"fingerprint\":{\"size\":87,\"modified\":1700000000000,\"head\":1482495679}},\"items\":12}","batch.writer.checkpoint":"{\"table\":\"written\",\"fields\":[\"id\",\"name\"]}","batch.marker":"{\"lineage\":\"760b332152666aba759bef5daff3efe2\",\"interval\":3}"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(21,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_STEP_EXECUTION_CONTEXT VALUES(22,'{"@class":"java.util.HashMap","batch.reader.checkpoint":"{\"files\":0,\"names\":0,\"contents\":0,\"found\":1,\"file\":{\"resource\":\"in/short.csv\",\"byte\":42,\"line\":7,\"record\":5,\"fingerprint\":{\"size\":105,\"modified\":1700000000000,\"head\":1558400134}},\"items\":12}","batch.writer.checkpoint":"{\"output\":{\"file\":1,\"length\":40,\"items\":4,\"content\":83368513},\"frame\":null,\"columns\":[\"id\",\"name\"],\"form\":1586755676}"}',NULL);
CREATE TABLE BATCH_JOB_EXECUTION_CONTEXT (
    JOB_EXECUTION_ID INTEGER NOT NULL PRIMARY KEY,
    SHORT_CONTEXT VARCHAR(2500) NOT NULL,
    SERIALIZED_CONTEXT CLOB,
    constraint JOB_EXEC_CTX_FK foreign key (JOB_EXECUTION_ID)
    references BATCH_JOB_EXECUTION(JOB_EXECUTION_ID)
);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(1,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(2,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(3,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(4,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(5,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(6,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(7,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(8,'{"@class":"java.util.HashMap","batch.parallel.elements":"{\"load\":{\"tx\":null,\"committed\":null,\"plan\":{\"sub_job_count\":2,\"sub_job_properties\":[{\"file.name\":\"rows-1\",\"resource\":\"in/rows-1.csv\"},{\"file.name\":\"rows-2\",\"resource\":\"in/rows-2.csv\"}]},\"planned\":8,\"algorithm\":\"filePartitions\",\"since\":null}}"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(9,'{"@class":"java.util.HashMap"}',NULL);
INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES(10,'{"@class":"java.util.HashMap"}',NULL);
CREATE TABLE BATCH_STEP_EXECUTION_SEQ (ID INTEGER PRIMARY KEY AUTOINCREMENT);
INSERT INTO BATCH_STEP_EXECUTION_SEQ VALUES(22);
CREATE TABLE BATCH_JOB_EXECUTION_SEQ (ID INTEGER PRIMARY KEY AUTOINCREMENT);
INSERT INTO BATCH_JOB_EXECUTION_SEQ VALUES(10);
CREATE TABLE BATCH_JOB_SEQ (ID INTEGER PRIMARY KEY AUTOINCREMENT);
INSERT INTO BATCH_JOB_SEQ VALUES(10);
CREATE TABLE BATCH_JOB_INSTANCE_LEASE (
    JOB_INSTANCE_ID INTEGER NOT NULL PRIMARY KEY,
    JOB_EXECUTION_ID INTEGER NOT NULL,
    OWNER VARCHAR(250) NOT NULL,
    FENCE INTEGER NOT NULL,
    EXPIRES_AT INTEGER NOT NULL,
    TAKEOVERS INTEGER NOT NULL,
    LAST_CHECKPOINT_VERSION INTEGER NOT NULL
);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(1,1,'host/7585/f7bd7c1e593fee17/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(2,2,'host/7601/3ba7712a8285e20e/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(3,3,'host/7614/d2768e93f779624a/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(4,4,'host/7629/f65e484473b58722/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(5,5,'host/7638/6900a56e371122e4/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(6,6,'host/7661/b32220fc4d2987da/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(7,7,'host/7680/6ad927e6854928e0/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(8,8,'host/7712/3eefedede812f9f6/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(9,9,'host/7738/bd102b72c5f75dac/locked',1,-1,0,0);
INSERT INTO BATCH_JOB_INSTANCE_LEASE VALUES(10,10,'host/7747/1b34c061169e0fe8/locked',1,-1,0,0);
CREATE TABLE BATCH_PARTITION_LEASE (
    STEP_EXECUTION_ID INTEGER NOT NULL PRIMARY KEY,
    JOB_EXECUTION_ID INTEGER NOT NULL,
    OWNER VARCHAR(250) NOT NULL,
    EXPIRES_AT INTEGER NOT NULL,
    CLAIMS INTEGER NOT NULL
);
CREATE TABLE BATCH_PARTITION_TICKET (
    STEP_EXECUTION_ID INTEGER NOT NULL PRIMARY KEY,
    JOB_EXECUTION_ID INTEGER NOT NULL,
    QUEUE_NAME VARCHAR(100) NOT NULL,
    ATTEMPT INTEGER NOT NULL,
    FINGERPRINT VARCHAR(100) NOT NULL,
    AVAILABLE_AT INTEGER NOT NULL
);
CREATE TABLE BATCH_PARTITION_REPORT (
    STEP_EXECUTION_ID INTEGER NOT NULL,
    CLAIM INTEGER NOT NULL,
    REPORT_NUMBER INTEGER NOT NULL,
    JOB_EXECUTION_ID INTEGER NOT NULL,
    REPORT TEXT NOT NULL,
    PRIMARY KEY (STEP_EXECUTION_ID, CLAIM, REPORT_NUMBER)
);
CREATE TABLE BATCH_WORKER (
    WORKER_NAME VARCHAR(250) NOT NULL PRIMARY KEY,
    QUEUE_NAME VARCHAR(100) NOT NULL,
    SLOTS INTEGER NOT NULL,
    RUNTIME_VERSION VARCHAR(50) NOT NULL,
    STATUS VARCHAR(10) NOT NULL,
    STARTED_AT INTEGER NOT NULL,
    EXPIRES_AT INTEGER NOT NULL
);
CREATE TABLE BATCH_LAUNCH (
    LAUNCH_ID INTEGER NOT NULL PRIMARY KEY,
    JOB_NAME VARCHAR(100) NOT NULL,
    JOB_KEY VARCHAR(32) NOT NULL,
    QUEUE_NAME VARCHAR(100) NOT NULL,
    FINGERPRINT VARCHAR(100) NOT NULL,
    PARAMETERS TEXT NOT NULL,
    STATUS VARCHAR(10) NOT NULL,
    WORKER_NAME VARCHAR(250),
    JOB_EXECUTION_ID INTEGER,
    MESSAGE TEXT NOT NULL,
    AVAILABLE_AT INTEGER NOT NULL,
    SUBMITTED_AT INTEGER NOT NULL,
    CHANGED_AT INTEGER NOT NULL,
    IS_OPEN INTEGER,
    constraint LAUNCH_OPEN_UN unique (JOB_NAME, JOB_KEY, IS_OPEN)
);
CREATE TABLE BATCH_JOB_TURN (
    JOB_EXECUTION_ID INTEGER NOT NULL PRIMARY KEY,
    JOB_NAME VARCHAR(100) NOT NULL,
    IS_TAKEN INTEGER,
    constraint JOB_TURN_UN unique (JOB_NAME, IS_TAKEN)
);
CREATE TABLE BATCH_NOTIFICATION (
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
CREATE TABLE written (id INTEGER NOT NULL, name TEXT NOT NULL);
INSERT INTO written VALUES(1,'Ada 1');
INSERT INTO written VALUES(2,'Ada 2');
INSERT INTO written VALUES(3,'Ada 3');
INSERT INTO written VALUES(4,'Ada 4');
INSERT INTO written VALUES(5,'Ada 5');
INSERT INTO written VALUES(6,'Ada 6');
INSERT INTO written VALUES(1,'Ada 1');
INSERT INTO written VALUES(2,'Ada 2');
INSERT INTO written VALUES(3,'Ada 3');
INSERT INTO written VALUES(4,'Ada 4');
INSERT INTO written VALUES(4,'Ada 4');
INSERT INTO written VALUES(5,'Ada 5');
INSERT INTO written VALUES(1,'Ada 1');
INSERT INTO written VALUES(2,'Ada 2');
INSERT INTO written VALUES(3,'Ada 3');
CREATE TABLE source (n INTEGER PRIMARY KEY, id TEXT, name TEXT);
INSERT INTO source VALUES(1,'1','Ada 1');
INSERT INTO source VALUES(2,'2','Ada 2');
INSERT INTO source VALUES(3,'3','Ada 3');
INSERT INTO source VALUES(4,'4','Ada 4');
INSERT INTO source VALUES(5,'5','Ada 5');
INSERT INTO source VALUES(6,'6','Ada 6');
INSERT INTO source VALUES(7,'x7','Ada 7');
INSERT INTO source VALUES(8,'8','Ada 8');
INSERT INTO source VALUES(9,'9','Ada 9');
INSERT INTO source VALUES(10,'10','Ada 10');
INSERT INTO source VALUES(11,'11','Ada 11');
INSERT INTO source VALUES(12,'12','Ada 12');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('BATCH_JOB_SEQ',10);
INSERT INTO sqlite_sequence VALUES('BATCH_JOB_INSTANCE',10);
INSERT INTO sqlite_sequence VALUES('BATCH_JOB_EXECUTION_SEQ',10);
INSERT INTO sqlite_sequence VALUES('BATCH_JOB_EXECUTION',10);
INSERT INTO sqlite_sequence VALUES('BATCH_STEP_EXECUTION_SEQ',22);
INSERT INTO sqlite_sequence VALUES('BATCH_STEP_EXECUTION',22);
CREATE INDEX BATCH_JOB_EXECUTION_INSTANCE_IX ON BATCH_JOB_EXECUTION (JOB_INSTANCE_ID);
CREATE INDEX BATCH_JOB_EXECUTION_PARAMS_IX ON BATCH_JOB_EXECUTION_PARAMS (JOB_EXECUTION_ID);
CREATE INDEX BATCH_STEP_EXECUTION_STEP_IX ON BATCH_STEP_EXECUTION (JOB_EXECUTION_ID, STEP_NAME);
CREATE INDEX BATCH_PARTITION_TICKET_IX ON BATCH_PARTITION_TICKET (QUEUE_NAME, STEP_EXECUTION_ID);
CREATE INDEX BATCH_LAUNCH_IX ON BATCH_LAUNCH (QUEUE_NAME, STATUS);
CREATE INDEX BATCH_NOTIFICATION_IX ON BATCH_NOTIFICATION (TARGET, DUE_AT);
CREATE INDEX BATCH_NOTIFICATION_INST_IX ON BATCH_NOTIFICATION (JOB_INSTANCE_ID);
COMMIT;
