SELECT a FROM t1 JOIN t2 LEFT JOIN t3 ON t2.a = t3.a AND t3.b = 5 JOIN t4 USING (a)
SELECT a FROM t1 JOIN t2 JOIN t3 ON t1.a = t2.a ON t2.b = t3.b
SELECT a FROM t1 LEFT JOIN t2 LEFT JOIN t3 ON t2.a = t3.a ON t1.a = t2.a WHERE t3.x = 'y'
SELECT a FROM (t1, t2) JOIN (t3 CROSS JOIN t4) ON 1 = 1
SELECT ((SELECT 1) + 1), ((SELECT 2)), ((SELECT 1) UNION (SELECT 2)), (1, (2, 3)) = (SELECT 1, 2)
SELECT * FROM ((SELECT 1 AS a) UNION (SELECT 2)) x
SELECT * FROM ((SELECT 1 AS a) x JOIN t1 ON x.a = t1.a AND t1.b = 3)
SELECT a BETWEEN 1 AND 2 AND b, a NOT BETWEEN b IN (1) AND 3 = 4, NOT a = b, NOT NOT a, - - a, !a + b, ~a * b
SELECT a LIKE b = c, a = b LIKE c, a IS NULL = 1, a = b IS NULL, a IN (1) IN (0), a OR b XOR c AND d
SELECT BINARY a = b, - a COLLATE utf8mb4_bin, a ^ b * c + d << e & f | g, a DIV b MOD c % d / e
SELECT @a := b OR c, @a := @b := 3, @`a b`, @'x y', @"q", @@session.`sql_mode`
SELECT INTERVAL 1 DAY + d, d + INTERVAL (1) DAY, d + INTERVAL 1 + 2 DAY - INTERVAL '1' SECOND, INTERVAL(1, 2, 3), INTERVAL (1) DAY + d FROM t
SELECT COUNT (1), count(*), COUNT(DISTINCT a, b), SUM(ALL a), `count`(1), `trim`(a), db.f(1), f(), NOW(), NOW(6), CURRENT_TIMESTAMP(3), CURRENT_DATE FROM t
SELECT 1 FROM t WHERE a = 'x' 'y' AND b = "it""s" AND c = 'a\\b\n' AND d = '\%\_' LIMIT 3
SELECT 1 FROM t WHERE a > NOW() - INTERVAL 5 MINUTE AND b IN (SELECT c FROM u WHERE d = 6 LIMIT 7) AND e = -8.5 AND f = 1e3
SELECT a FROM t WHERE a = 18446744073709551615 AND b = 99999999999999999999999 AND c = 0x1F AND d = b'101'
SELECT a, 'x', (SELECT y FROM u WHERE z = 5) FROM t WHERE b = 6 GROUP BY 1, a + 2 HAVING COUNT(*) > 7 ORDER BY 1, b * 2 LIMIT 8, 9
SELECT t.select, t.5a, `t`.`from`, db.t.group FROM db.t, `a``b` AS `c d`
SELECT CAST(a AS CHAR(5)) = 'x', CAST(b AS DECIMAL(10,2)), CONVERT(a USING utf8mb4), CONVERT(b, UNSIGNED) FROM t WHERE CAST(c AS CHAR(3)) = 'abc' AND ROUND(d, 2) = 3.14
SELECT SUBSTRING(a FROM 2 FOR 3), TRIM(LEADING FROM a), TRIM(a), POSITION('x' IN a), EXTRACT(DAY FROM a) FROM t WHERE SUBSTRING(a FROM 2 FOR 3) = 'q' AND TRIM(BOTH 'z' FROM b) = 'w'
SELECT CASE WHEN a = 1 THEN 'x' END FROM t WHERE CASE b WHEN 2 THEN 'y' ELSE 'z' END = 'q' FOR UPDATE
SELECT a FROM t WHERE MATCH(b) AGAINST ('x y' IN BOOLEAN MODE) AND c LIKE 'd%' ESCAPE '|' AND e COLLATE 'utf8mb4_bin' = 'f' AND g = _latin1'h'
SELECT (((((((((1)))))))))
SELECT IF(a, 1, 2), LEFT(a, 3), RIGHT(a, 4), REPEAT('x', 5), REPLACE(a, 'x', 'y'), INSERT(a, 1, 2, 'z'), MOD(a, 2), DATE(a), YEAR(a), USER(), DATABASE(), VALUES(a), CHAR(65), ROW(1, 2) = (1, 2) FROM t
WITH x AS (SELECT a FROM t WHERE b = 1), y (c) AS (SELECT 2) SELECT * FROM x JOIN y WHERE x.a = 3
SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3 INTERSECT SELECT 4 UNION SELECT 5 ORDER BY 1 LIMIT 6
INSERT INTO t (a, b) VALUES (1, 'x'), (-2, NULL), (DEFAULT, 3.5) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1, b = IF(b = 'y', 'z', b)
INSERT INTO t SELECT 1, a FROM u WHERE b = 2 ON DUPLICATE KEY UPDATE c = 3
INSERT INTO t (a) (SELECT 1 FROM u WHERE b = 5)
REPLACE INTO t SET a = 1, b = 'two'
UPDATE t JOIN u ON t.a = u.a AND u.b = 1 SET t.c = 2, t.d = CONCAT(t.d, 'x') WHERE u.e = 'y'
UPDATE t SET a = a + 1 WHERE b = 2 ORDER BY c + 3 LIMIT 4
DELETE t.*, u FROM t JOIN u ON t.a = u.a WHERE u.b = 'x'
DELETE FROM t WHERE a = 1 OR b IN (2, 3) ORDER BY c LIMIT 4
SELECT a FROM t WHERE a IN (1,2,3,4,5,6,7,8,9,10) OR b = 1 OR b = 2 OR b = 3 AND c = 'd'
SELECT status, date, time, type, name, value, user, count, sum, offset.x FROM comment, data
SELECT a "alias", b 'other', c third FROM t WHERE d = 'x'
