-- Spring Batch 4.1: Oracle's columns count characters. Those of this database always did, so this changes nothing.
SELECT 1;
