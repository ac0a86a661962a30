"""Statements as people and their tools write them, on one table of people."""

# ruff: noqa: E501 - each is one line, as it is typed

ORDINARY = """
SELECT COUNT(*) FROM people
SELECT count(*) AS total FROM people
SELECT COUNT(*) FROM people WHERE age >= 30
SELECT COUNT(bonus) FROM people
SELECT SUM(salary) FROM people
SELECT AVG(salary) FROM people
SELECT AVG(salary) FROM people WHERE region = 'north'
SELECT STDDEV(salary) FROM people
SELECT VARIANCE(age) FROM people
SELECT MEDIAN(salary) FROM people
SELECT MIN(salary) FROM people
SELECT MAX(salary) FROM people
SELECT COUNT(DISTINCT region) FROM people
SELECT DISTINCT region FROM people
SELECT * FROM people LIMIT 10
SELECT region, COUNT(*) FROM people GROUP BY region
SELECT region, AVG(salary) FROM people GROUP BY region
SELECT region, SUM(salary) FROM people GROUP BY region
SELECT region, AVG(salary), COUNT(*) FROM people GROUP BY region
SELECT region, COUNT(*), SUM(salary), AVG(salary) FROM people GROUP BY region ORDER BY region
SELECT region, AVG(salary) AS mean_salary FROM people GROUP BY region ORDER BY mean_salary DESC
SELECT region, AVG(salary) FROM people GROUP BY 1 ORDER BY 2
SELECT region, AVG(salary), STDDEV(salary) FROM people GROUP BY region
SELECT region, level, COUNT(*) FROM people GROUP BY region, level
SELECT region, level, AVG(salary) FROM people GROUP BY region, level
SELECT region, level, COUNT(*) FROM people GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 5
SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 100
SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 3
SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC
SELECT region, AVG(salary) FROM people GROUP BY region HAVING AVG(salary) > 50000
SELECT region, AVG(salary) FROM people GROUP BY region HAVING COUNT(*) >= 100
SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY age
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM people GROUP BY decade ORDER BY decade
SELECT age / 10, COUNT(*) FROM people GROUP BY age / 10
SELECT age - age % 10 AS band, AVG(salary) FROM people GROUP BY band
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, COUNT(*) FROM people GROUP BY band
SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS band, AVG(salary) FROM people GROUP BY 1
SELECT CASE WHEN region IN ('north', 'south') THEN 'ns' ELSE 'ew' END AS side, COUNT(*) FROM people GROUP BY side
SELECT WIDTH_BUCKET(age, 20, 80, 6) AS b, COUNT(*) FROM people GROUP BY b
SELECT DATE_TRUNC('month', hired) AS month, COUNT(*) FROM people GROUP BY month ORDER BY month
SELECT DATE_TRUNC('year', hired) AS y, AVG(salary) FROM people GROUP BY 1
SELECT EXTRACT(YEAR FROM hired) AS y, COUNT(*) FROM people GROUP BY y
SELECT YEAR(hired) AS y, SUM(salary) FROM people GROUP BY YEAR(hired)
SELECT EXTRACT(YEAR FROM hired) AS y, region, COUNT(*) FROM people GROUP BY y, region
SELECT COUNT(*) FROM people WHERE hired >= '2020-01-01'
SELECT COUNT(*) FROM people WHERE hired >= DATE '2020-01-01' AND hired < DATE '2021-01-01'
SELECT COUNT(*) FROM people WHERE EXTRACT(YEAR FROM hired) = 2020
SELECT COUNT(*) FROM people WHERE YEAR(hired) BETWEEN 2018 AND 2020
SELECT AVG(salary) FROM people WHERE hired BETWEEN '2018-01-01' AND '2018-12-31'
SELECT COUNT(*) FROM people WHERE salary BETWEEN 30000 AND 59999
SELECT COUNT(*) FROM people WHERE region IN ('north', 'east') AND age > 40
SELECT COUNT(*) FROM people WHERE region <> 'north'
SELECT COUNT(*) FROM people WHERE NOT (region = 'north' OR age < 30)
SELECT COUNT(*) FROM people WHERE region LIKE 'n%'
SELECT COUNT(*) FROM people WHERE region ILIKE '%TH'
SELECT COUNT(*) FROM people WHERE UPPER(region) = 'NORTH'
SELECT COUNT(*) FROM people WHERE LOWER(region) IN ('north', 'south')
SELECT COUNT(*) FROM people WHERE bonus IS NULL
SELECT COUNT(*) FROM people WHERE bonus IS NOT NULL AND age > 30
SELECT AVG(bonus) FROM people
SELECT COUNT(*) FROM people WHERE employed
SELECT COUNT(*) FROM people WHERE employed = true
SELECT COUNT(*) FROM people WHERE NOT employed
SELECT employed, COUNT(*) FROM people GROUP BY employed
SELECT employed, AVG(age) FROM people GROUP BY employed
SELECT COUNT(*) FROM people WHERE hours * 52 > 2000
SELECT COUNT(*) FROM people WHERE salary > 50000 AND 1 = 1
SELECT COUNT(*) FROM people WHERE age >= '30'
SELECT COUNT(*) FROM people WHERE CAST(age AS INTEGER) > 30
SELECT COUNT(*) FROM public.people
SELECT COUNT(*) FROM "people" WHERE "age" > 30
SELECT COUNT(*) FROM people p WHERE p.age > 30
SELECT p.region, COUNT(*) FROM people AS p GROUP BY p.region
SELECT COUNT(*) FILTER (WHERE age < 30) AS young, COUNT(*) AS n FROM people
SELECT SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END) AS young FROM people
SELECT region, SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END) AS young, COUNT(*) AS n FROM people GROUP BY region
SELECT region, COUNT(CASE WHEN employed THEN 1 END) AS working FROM people GROUP BY region
SELECT COUNT(CASE WHEN age < 30 THEN 1 END), COUNT(CASE WHEN salary > 50000 THEN 1 END) FROM people
SELECT region, AVG(CASE WHEN employed THEN 1.0 ELSE 0 END) AS rate FROM people GROUP BY region
SELECT region, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY region
SELECT region, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM people GROUP BY region ORDER BY pct DESC
SELECT SUM(salary) / COUNT(*) FROM people
SELECT region, SUM(salary) / COUNT(*) AS mean FROM people GROUP BY region
SELECT region, AVG(salary) * 12 FROM people GROUP BY region
SELECT ROUND(AVG(salary), 2) FROM people
SELECT region, ROUND(AVG(age), 1) AS a FROM people GROUP BY region ORDER BY a
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY salary) FROM people
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY salary) FROM people WHERE region = 'north'
SELECT region, MEDIAN(salary) FROM people GROUP BY region
SELECT QUANTILE_CONT(salary, 0.25), QUANTILE_CONT(salary, 0.75) FROM people
SELECT MODE(region) FROM people
SELECT COUNT(*) FROM (SELECT * FROM people WHERE age > 30) t
SELECT region, n FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) t WHERE n > 50
WITH adults AS (SELECT * FROM people WHERE age >= 30) SELECT region, COUNT(*) FROM adults GROUP BY region
WITH t AS (SELECT region, salary AS pay FROM people) SELECT region, AVG(pay) FROM t GROUP BY region
SELECT region, COUNT(*) FROM people GROUP BY region UNION ALL SELECT 'all', COUNT(*) FROM people
SELECT region, level, COUNT(*) FROM people GROUP BY ROLLUP (region, level)
SELECT region, level, COUNT(*) FROM people GROUP BY CUBE (region, level)
SELECT region, AVG(salary), AVG(age) FROM people GROUP BY region
SELECT region, AVG(salary), MEDIAN(salary) FROM people GROUP BY region
SELECT region, MIN(salary), MAX(salary), AVG(salary) FROM people GROUP BY region
SELECT level, COUNT(*) FROM people WHERE level >= 'mid' GROUP BY level
SELECT COUNT(*) FROM people WHERE age IS NOT DISTINCT FROM 30
SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 40 AND 30
SELECT CORR(age, salary) FROM people
SELECT department, AVG(rate) FROM people WHERE age > 30 GROUP BY department ORDER BY AVG(rate) DESC LIMIT 2
SELECT salary, COUNT(*) FROM people GROUP BY salary ORDER BY COUNT(*) DESC LIMIT 10
""".strip().splitlines()
"""What is typed first."""

TOOLS = """
select count(*) from people where age > 30 and age <= 50
SELECT COUNT(1) AS "Count of rows" FROM "public"."people"
SELECT "people"."region" AS "region", COUNT(*) AS "count" FROM "public"."people" GROUP BY "people"."region" ORDER BY "people"."region" ASC
SELECT "public"."people"."region" AS "region", COUNT(*) AS "count" FROM "public"."people" GROUP BY "public"."people"."region" ORDER BY "public"."people"."region" ASC
SELECT CAST("people"."region" AS TEXT) AS "region", COUNT(1) AS "cnt:ok" FROM "people" GROUP BY 1
SELECT DATE_TRUNC('month', "public"."people"."hired") AS "hired", COUNT(*) AS "count" FROM "public"."people" GROUP BY DATE_TRUNC('month', "public"."people"."hired") ORDER BY DATE_TRUNC('month', "public"."people"."hired") ASC
SELECT (CAST(FLOOR("people"."age" / 10.0) AS INTEGER) * 10) AS "age", COUNT(*) AS "count" FROM "people" GROUP BY 1 ORDER BY 1
SELECT FLOOR(("public"."people"."age" / 5.0)) * 5.0 AS "age", COUNT(*) AS "count" FROM "public"."people" GROUP BY FLOOR(("public"."people"."age" / 5.0)) * 5.0
SELECT SUM("people"."salary") AS "sum:salary:ok", AVG("people"."age") AS "avg:age:ok" FROM "people"
SELECT people.department AS department, AVG(people.salary) AS "AVG(salary)" FROM people GROUP BY people.department ORDER BY "AVG(salary)" DESC LIMIT 1000
SELECT department AS department, count(*) AS count FROM people WHERE hired >= TO_DATE('2019-01-01', 'YYYY-MM-DD') GROUP BY department
SELECT DATE_TRUNC('quarter', hired) AS q, SUM(salary) AS payroll FROM people GROUP BY q ORDER BY q
SELECT to_char(hired, 'YYYY-MM') AS ym, COUNT(*) FROM people GROUP BY ym ORDER BY ym
SELECT strftime(hired, '%Y') AS y, COUNT(*) FROM people GROUP BY y
SELECT EXTRACT(QUARTER FROM hired) AS q, COUNT(*) FROM people GROUP BY q
SELECT EXTRACT(MONTH FROM hired) AS m, AVG(salary) FROM people GROUP BY m ORDER BY m
SELECT EXTRACT(DOW FROM hired) AS weekday, COUNT(*) FROM people GROUP BY weekday
SELECT COUNT(*) FROM people WHERE EXTRACT(MONTH FROM hired) IN (6, 7, 8)
SELECT COUNT(*) FROM people WHERE hired >= CURRENT_DATE - INTERVAL '1 year'
SELECT COUNT(*) FROM people WHERE hired BETWEEN DATE '2020-01-01' AND DATE '2020-01-01' + INTERVAL '90 days'
SELECT COUNT(*) FROM people WHERE hired::date < '2018-05-01'::date
SELECT COUNT(*) FROM people WHERE CAST(hired AS DATE) = '2020-02-29'
SELECT AVG(salary)::numeric(10,2) FROM people
SELECT CAST(AVG(salary) AS INTEGER) FROM people
SELECT ROUND(AVG(salary)) FROM people
SELECT ROUND(AVG(salary)::numeric, 2) AS avg_salary FROM people WHERE department = 'sales'
SELECT FLOOR(AVG(age)) FROM people
SELECT COALESCE(SUM(bonus), 0) FROM people
SELECT SUM(COALESCE(bonus, 0)) FROM people
SELECT AVG(COALESCE(bonus, 0)) FROM people
SELECT COALESCE(region, 'unknown') AS r, COUNT(*) FROM people GROUP BY r
SELECT IFNULL(bonus, 0) > 1000 AS has_bonus, COUNT(*) FROM people GROUP BY 1
SELECT bonus IS NULL AS missing, COUNT(*) FROM people GROUP BY 1
SELECT age >= 65 AS retired, COUNT(*) FROM people GROUP BY age >= 65
SELECT age > 40 AS senior, AVG(salary) FROM people GROUP BY 1
SELECT COUNT(*) - COUNT(bonus) AS missing FROM people
SELECT 100.0 * COUNT(bonus) / COUNT(*) AS filled FROM people
SELECT COUNT(*) AS n, COUNT(bonus) AS with_bonus FROM people
SELECT region, COUNT(*) FROM people WHERE region IS NOT NULL GROUP BY region
SELECT region, COUNT(*) FROM people WHERE region != 'west' GROUP BY region ORDER BY COUNT(*) DESC
SELECT region, COUNT(*) AS n FROM people WHERE age BETWEEN 25 AND 35 GROUP BY region HAVING n > 10 ORDER BY n DESC LIMIT 2
SELECT region, department, AVG(salary) AS a FROM people GROUP BY region, department HAVING COUNT(*) > 20 ORDER BY a DESC
SELECT region, MAX(salary) - MIN(salary) AS spread FROM people GROUP BY region
SELECT region, COUNT(DISTINCT department) FROM people GROUP BY region
SELECT TOP 3 region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC
SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY 2 DESC FETCH FIRST 2 ROWS ONLY
SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY COUNT(*) DESC NULLS LAST
SELECT COUNT(*) FROM people WHERE (age < 25 OR age > 65) AND department IN ('sales', 'support')
SELECT COUNT(*) FROM people WHERE department NOT IN ('sales', 'hr')
SELECT COUNT(*) FROM people WHERE department = 'sales' AND level = 'high' AND salary > 80000
SELECT COUNT(*) FROM people WHERE department = ANY (ARRAY['sales', 'hr'])
SELECT COUNT(*) FROM people WHERE salary > 1e5
SELECT COUNT(*) FROM people WHERE salary / 12 > 5000
SELECT COUNT(*) FROM people WHERE salary >= 12 * 5000
SELECT COUNT(*) FROM people WHERE salary + 10000 < 50000
SELECT COUNT(*) FROM people WHERE age % 2 = 0
SELECT COUNT(*) FROM people WHERE ABS(age - 40) <= 5
SELECT COUNT(*) FROM people WHERE salary > bonus
SELECT COUNT(*) FROM people WHERE salary > (SELECT AVG(salary) FROM people)
SELECT COUNT(*) FROM people WHERE region = 'North'
SELECT COUNT(*) FROM people WHERE region = 'nowhere'
SELECT COUNT(*) FROM people WHERE region LIKE '%o%' AND region NOT LIKE 's%'
SELECT COUNT(*) FROM people WHERE LEFT(region, 1) = 'n'
SELECT COUNT(*) FROM people WHERE SUBSTRING(region, 1, 1) = 's'
SELECT COUNT(*) FROM people WHERE LENGTH(department) > 5
SELECT COUNT(*) FROM people WHERE region ~ '^(north|south)$'
SELECT UPPER(region) AS r, COUNT(*) FROM people GROUP BY UPPER(region)
SELECT LEFT(region, 1) AS r, COUNT(*) FROM people GROUP BY 1
SELECT CONCAT(region, '-', level) AS k, COUNT(*) FROM people GROUP BY k
SELECT region || '/' || level AS k, COUNT(*) FROM people GROUP BY 1
SELECT CASE region WHEN 'north' THEN 'N' WHEN 'south' THEN 'S' ELSE 'other' END AS r, COUNT(*) FROM people GROUP BY 1
SELECT CASE WHEN salary < 30000 THEN 'low' WHEN salary BETWEEN 30000 AND 79999 THEN 'mid' ELSE 'high' END AS band, COUNT(*), AVG(age) FROM people GROUP BY band
SELECT CASE WHEN employed THEN 'yes' ELSE 'no' END AS works, COUNT(*) FROM people GROUP BY works
SELECT region, SUM(CASE WHEN level = 'low' THEN 1 ELSE 0 END) AS low, SUM(CASE WHEN level = 'mid' THEN 1 ELSE 0 END) AS mid, SUM(CASE WHEN level = 'high' THEN 1 ELSE 0 END) AS high FROM people GROUP BY region
SELECT region, COUNT(*) FILTER (WHERE employed) * 1.0 / COUNT(*) AS share FROM people GROUP BY region
SELECT SUM(CASE WHEN employed THEN salary ELSE 0 END) / SUM(salary) FROM people
SELECT SUM(IF(age > 40, 1, 0)) FROM people
SELECT COUNT_IF(age > 40) FROM people
SELECT SUM(CAST(employed AS INT)) FROM people
SELECT AVG(CAST(employed AS INT)) FROM people
SELECT AVG(employed::int) FROM people
SELECT SUM(employed::int) AS n_employed, COUNT(*) AS n FROM people
SELECT region, AVG(employed::int)*100 AS pct FROM people GROUP BY region
SELECT SUM(salary * 12) FROM people
SELECT SUM(salary) / 1000.0 AS k FROM people
SELECT AVG(salary / 12) FROM people
SELECT AVG(salary) / AVG(hours) FROM people
SELECT region, SUM(salary) / SUM(hours) FROM people GROUP BY region
SELECT region, SUM(salary) * 100.0 / SUM(SUM(salary)) OVER () AS pct FROM people GROUP BY region
SELECT region, SUM(COUNT(*)) OVER (ORDER BY region) AS running FROM people GROUP BY region
SELECT region, RANK() OVER (ORDER BY COUNT(*) DESC) AS rk, COUNT(*) FROM people GROUP BY region
SELECT approx_count_distinct(region) FROM people
SELECT approx_quantile(salary, 0.5) FROM people
SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age) FROM people
SELECT STDDEV_SAMP(salary), VAR_SAMP(salary) FROM people
SELECT region, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY salary) AS p90 FROM people GROUP BY region ORDER BY p90 DESC
SELECT region, QUANTILE_CONT(salary, [0.25, 0.5, 0.75]) FROM people GROUP BY region
SELECT ANY_VALUE(region) FROM people
SELECT GROUP_CONCAT(region) FROM people
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM people p2 WHERE p2.age = people.age)
SELECT a.region, COUNT(*) FROM people a JOIN people b ON a.age = b.age GROUP BY a.region
SELECT t.region, t.n FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) AS t ORDER BY t.n DESC LIMIT 2
SELECT COUNT(*) FROM (SELECT region, salary FROM people WHERE age > 30) AS virtual_table WHERE salary > 40000
SELECT SUM(n) FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) t
SELECT region, COUNT(*) FROM people WHERE 1=1 AND age > 20 AND TRUE GROUP BY region
SELECT region, COUNT(*) FROM people GROUP BY region LIMIT 0
SELECT FLOOR(salary / 10000) * 10000 AS bucket, COUNT(*) AS n FROM people GROUP BY bucket ORDER BY bucket
SELECT ROUND(salary, -4) AS bucket, COUNT(*) FROM people GROUP BY bucket
SELECT ROUND(rate) AS r, COUNT(*) FROM people GROUP BY r
SELECT TRUNC(age / 10) * 10 AS d, COUNT(*) FROM people GROUP BY d
SELECT CAST(age / 10 AS INT) AS d, COUNT(*) FROM people GROUP BY d
SELECT (age / 10) * 10 AS d, COUNT(*) FROM people GROUP BY 1
SELECT age // 10 AS d, COUNT(*) FROM people GROUP BY d
SELECT EXTRACT(YEAR FROM hired) AS y, EXTRACT(MONTH FROM hired) AS m, COUNT(*) FROM people GROUP BY y, m ORDER BY y, m
SELECT YEAR(hired), QUARTER(hired), AVG(salary) FROM people GROUP BY YEAR(hired), QUARTER(hired) ORDER BY 1, 2
SELECT YEAR(hired) AS y, region, COUNT(*) FROM people GROUP BY 1, 2 ORDER BY 1, 2
SELECT LENGTH(region) AS l, COUNT(*) FROM people GROUP BY l ORDER BY l DESC
SELECT age % 2 AS odd, COUNT(*) FROM people GROUP BY odd ORDER BY odd
SELECT 100 - age AS left, COUNT(*) FROM people GROUP BY 1 ORDER BY 1 LIMIT 5
SELECT UPPER(region) AS r, AVG(age) FROM people GROUP BY 1 HAVING COUNT(*) > 100 ORDER BY 1
SELECT COUNT(*) FROM people WHERE COALESCE(bonus, 0) > 1000
SELECT COUNT(*) FROM people WHERE COALESCE(bonus, 0) < 1000
SELECT COUNT(*) FROM people WHERE age % 10 = 5
SELECT COUNT(*) FROM people WHERE FLOOR(age / 10) = 3
SELECT COUNT(*) FROM people WHERE region IS NOT NULL AND level IS NOT NULL
SELECT AVG(rate * 10) FROM people
SELECT SUM(CASE WHEN age BETWEEN 30 AND 39 THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS pct FROM people
SELECT age, SUM(COUNT(*)) OVER (ORDER BY age) AS running FROM people GROUP BY age ORDER BY age
SELECT FLOOR(age / 10) * 10 AS d, SUM(COUNT(*)) OVER (ORDER BY FLOOR(age / 10) * 10) AS running FROM people GROUP BY d
SELECT COUNT(*) FROM people WHERE salary IS NOT NULL AND age > 40
SELECT COALESCE(age, 0) >= 65 AS retired, COUNT(*) FROM people GROUP BY 1
SELECT SUM(COALESCE(hours, 0)) AS h, COUNT(*) AS n FROM people WHERE COALESCE(salary, 0) > 50000
SELECT region, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM people) AS pct FROM people GROUP BY region ORDER BY pct DESC
SELECT region, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM people) AS pct FROM people GROUP BY region HAVING COUNT(*) > 100
SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS share FROM people WHERE age >= 65
WITH t AS (SELECT department, AVG(salary) AS a, COUNT(*) AS n FROM people GROUP BY department) SELECT department, ROUND(a / 1000.0, 1) AS k, n FROM t WHERE n > 50 ORDER BY k DESC
SELECT AVG(salary::float) AS a, SUM(CAST(hours AS BIGINT)) AS s FROM people WHERE bonus IS NULL OR 1 = 1
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age::float) FROM people
SELECT (CASE WHEN ("people"."age" < 30) THEN '<30' ELSE '30+' END) AS "Age", AVG(CAST("people"."salary" AS DOUBLE PRECISION)) AS "m" FROM "people" GROUP BY 1 HAVING (COUNT(1) > 0)
SELECT "decade", COUNT(*) AS "n" FROM (SELECT "people".*, FLOOR("age" / 10.0) * 10.0 AS "decade" FROM "people" WHERE ("age" > 30.0)) "q01" GROUP BY "decade"
SELECT "q01".*, "n" * 100.0 / SUM("n") OVER () AS "pct" FROM (SELECT "region", COUNT(*) AS "n" FROM "people" GROUP BY "region") AS "q01"
WITH c AS (SELECT region, COUNT(*) AS n FROM people GROUP BY region) SELECT region, n * 100.0 / (SELECT SUM(n) FROM c) AS pct FROM c
WITH c AS (SELECT region, COUNT(*) AS n FROM people GROUP BY region) SELECT region, n * 100.0 / SUM(n) OVER () AS pct FROM c WHERE n > 200
WITH c AS (SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 9) SELECT region, n * 100.0 / SUM(n) OVER () AS pct FROM c
SELECT SUM(1) AS "n" FROM people HAVING COUNT(1) > 0
SELECT region, COUNT(*) FROM people GROUP BY region HAVING region <> 'north' AND COUNT(*) > 10
SELECT SUM(CASE level WHEN 'low' THEN 1 ELSE 0 END) AS low FROM people
SELECT AVG(2 * hours + 1), SUM(10 - hours), AVG((salary - 1000) / 3.0) FROM people
SELECT CASE WHEN salary < 50000 THEN 'low' WHEN salary < 100000 THEN 'mid' ELSE 'high' END AS band, COUNT(*) FROM people GROUP BY band ORDER BY band DESC
SELECT CASE WHEN salary < 50000 THEN 9 WHEN salary < 100000 THEN 10 ELSE 11 END AS band, AVG(age) FROM people GROUP BY band ORDER BY band
SELECT age, COUNT(*) FROM people WHERE age >= 30 GROUP BY age ORDER BY age LIMIT 5
SELECT COUNT(*) FROM people WHERE STARTS_WITH(region, 'n') OR POSITION('o' IN region) > 2
SELECT COUNT(*) FROM people WHERE region LIKE '%' || 'or' || '%' AND region LIKE '%/o%' ESCAPE '/'
SELECT COUNT(*) FROM people WHERE hired >= TO_TIMESTAMP('2020-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
SELECT COUNT(*) FROM people WHERE employed = 'true' AND COALESCE(employed, FALSE) AND region <> ALL (ARRAY['north', 'east'])
SELECT COUNT(*) FROM people WHERE region ~ '^n'
SELECT region, AVG(salary) FILTER (WHERE employed) AS a, COUNT(*) FILTER (WHERE employed) AS n FROM people GROUP BY region
SELECT REPLACE(region, 'th', '') AS r, COUNT(*) FROM people GROUP BY 1
SELECT CASE WHEN bonus < 100 THEN 'low' ELSE 'more' END AS b, COUNT(*) FROM people GROUP BY b
SELECT age, salary, hours, rate, region, level, department, hired, employed, bonus FROM people LIMIT 100
SELECT region, total / n AS mean FROM (SELECT region, SUM(salary) AS total, COUNT(*) AS n FROM people GROUP BY region) t ORDER BY mean
""".strip().splitlines()
"""How dashboards, reports and other databases' habits have it."""

BESIDE = """
SELECT AVG(salary) FILTER (WHERE level = 'low') - AVG(salary) FILTER (WHERE level = 'high') AS gap FROM people
SELECT AVG(CASE WHEN region = 'north' THEN salary END) / AVG(CASE WHEN region = 'south' THEN salary END) AS ratio FROM people
SELECT AVG(salary) AS all_of_them, AVG(salary) FILTER (WHERE employed) AS working, AVG(salary) FILTER (WHERE NOT employed) AS idle FROM people
SELECT region, AVG(salary) FILTER (WHERE employed) AS w, AVG(salary) FILTER (WHERE NOT employed) AS i FROM people GROUP BY region ORDER BY region
SELECT SUM(salary) FILTER (WHERE employed) / COUNT(*) AS per_head FROM people
SELECT COUNT(*) AS total, SUM(CASE WHEN employed THEN 1 ELSE 0 END) AS working, SUM(CASE WHEN employed THEN salary ELSE 0 END) AS wages FROM people
SELECT region, COUNT(*) AS n, COUNT(*) FILTER (WHERE employed) AS working, AVG(salary) AS s FROM people GROUP BY region ORDER BY region DESC
SELECT AVG(salary) FILTER (WHERE age < 30) AS y, AVG(salary) FILTER (WHERE age BETWEEN 30 AND 59) AS m, AVG(salary) FILTER (WHERE age >= 60) AS o FROM people
SELECT SUM(salary) FILTER (WHERE region IN ('north', 'west')) * 100.0 / SUM(salary) AS pct FROM people WHERE hired >= '2018-01-01'
SELECT AVG(salary) FILTER (WHERE level = 'low' AND employed) - AVG(salary) AS gap FROM people
SELECT STDDEV(salary) FILTER (WHERE employed) AS a, STDDEV(salary) FILTER (WHERE NOT employed) AS b FROM people
SELECT YEAR(hired) AS y, SUM(CASE WHEN employed THEN salary ELSE 0 END) * 1.0 / SUM(salary) AS share FROM people GROUP BY y ORDER BY y
SELECT ROUND(AVG(hours) FILTER (WHERE hired >= '2020-01-01') / AVG(hours) FILTER (WHERE hired < '2020-01-01') * 100, 1) AS pct FROM people
SELECT MEDIAN(salary) FILTER (WHERE employed) - MEDIAN(salary) FILTER (WHERE NOT employed) AS gap FROM people
SELECT region, MEDIAN(CASE WHEN age < 40 THEN salary END) AS young, MEDIAN(CASE WHEN age >= 40 THEN salary END) AS old FROM people GROUP BY region ORDER BY region
SELECT AVG(bonus) FILTER (WHERE region = 'north') AS a, COUNT(bonus) AS b, COUNT(*) AS n FROM people
SELECT AVG(salary) * COUNT(*) AS total, STDDEV(salary) / AVG(salary) AS cv FROM people
SELECT SUM(salary) / SUM(hours) - SUM(salary) FILTER (WHERE employed) / SUM(hours) FILTER (WHERE employed) AS d FROM people
SELECT EXTRACT(MONTH FROM hired) AS m, COUNT(*) AS n FROM people GROUP BY m ORDER BY m
SELECT MONTH(hired) AS m, AVG(salary) AS s FROM people WHERE employed GROUP BY 1 ORDER BY 1 DESC
SELECT monthname(hired) AS m, COUNT(*) AS n FROM people GROUP BY m ORDER BY m
SELECT dayname(hired) AS d, COUNT(*) AS n FROM people GROUP BY d ORDER BY d
SELECT EXTRACT(DOW FROM hired) AS d, AVG(hours) AS h FROM people GROUP BY d ORDER BY d
SELECT WEEK(hired) AS w, COUNT(*) AS n FROM people GROUP BY w ORDER BY w
SELECT region, EXTRACT(QUARTER FROM hired) AS q, COUNT(*) AS n FROM people GROUP BY region, q ORDER BY q DESC, region
SELECT strftime(hired, '%B') AS m, MEDIAN(age) AS a FROM people GROUP BY m ORDER BY m
SELECT CASE WHEN EXTRACT(DOW FROM hired) IN (0, 6) THEN 'weekend' ELSE 'week' END AS w, AVG(hours) AS h FROM people GROUP BY w ORDER BY w DESC
SELECT EXTRACT(MONTH FROM hired) IN (6, 7, 8) AS summer, COUNT(*) AS n FROM people GROUP BY summer ORDER BY summer DESC
SELECT hired >= '2020-01-01' AS late, COUNT(*) AS n FROM people GROUP BY late ORDER BY late
SELECT COUNT(*) AS n FROM people WHERE EXTRACT(DOW FROM hired) IN (0, 6)
SELECT AVG(salary) AS s FROM people WHERE dayname(hired) = 'Sunday'
SELECT COUNT(*) AS n FROM people WHERE NOT EXTRACT(ISODOW FROM hired) > 5
SELECT AVG(salary) FILTER (WHERE EXTRACT(DOW FROM hired) IN (0, 6)) AS weekend, AVG(salary) AS s FROM people
SELECT bonus > 9999 AS high, COUNT(*) AS n FROM people GROUP BY high ORDER BY high NULLS FIRST
SELECT FLOOR(bonus / 5000) AS b, AVG(age) AS a FROM people GROUP BY b ORDER BY b DESC
SELECT FLOOR(bonus / 5000) AS b, AVG(age) AS a FROM people GROUP BY b ORDER BY b DESC NULLS FIRST
SELECT bonus IS NULL AS missing, COUNT(*) AS n FROM people GROUP BY missing ORDER BY missing DESC
SELECT region, employed, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, employed) ORDER BY region, employed
SELECT region, employed, COUNT(*) AS n FROM people GROUP BY CUBE (region, employed) ORDER BY employed DESC NULLS FIRST, region
SELECT region, employed, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY GROUPING SETS ((region), (employed), ()) ORDER BY 2 NULLS FIRST, 1 LIMIT 3
""".strip().splitlines()
"""Aggregates of different rows, parts of dates that come again, and orders of what is missing."""
