-- Spring Batch 4.1: Oracle's columns count characters. Those of this database always did, so nothing is to be done.
SELECT 1;
