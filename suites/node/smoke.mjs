// Smoke suite of mysql2 and mariadb for Node; see suites/README.md.
// The packages lie where `cargo xtask setup` put them, so they are resolved from there.
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';

const require = createRequire(process.env.SMOKE_NODE_MODULES ?? import.meta.url);
const mysql2 = require('mysql2/promise');
const mariadb = require('mariadb');

const port = Number(process.argv[2]);
const methods = (process.env.SMOKE_METHODS ?? '').split(' ').filter(Boolean);
const tls = process.env.SMOKE_TLS === '1';
const base = { host: '127.0.0.1', port, user: 'root', database: 'smoke' };
let failures = 0;

async function check(client, name, work) {
  try {
    await work();
    console.log('ok  ', client, name);
  } catch (error) {
    failures += 1;
    console.log('FAIL', client, name, String(error.message).slice(0, 300));
  }
}

const columns = {
  ti: ['TINYINT', -128], tu: ['TINYINT UNSIGNED', 255], si: ['SMALLINT', -32768],
  mi: ['MEDIUMINT', 8388607], i: ['INT', -2147483648], iu: ['INT UNSIGNED', 4294967295],
  bi: ['BIGINT', '-9223372036854775808'], bu: ['BIGINT UNSIGNED', '18446744073709551615'],
  de: ['DECIMAL(65,30)', '-12345678901234567890123456789012345.123456789012345678901234567891'],
  fl: ['FLOAT', 1.5], db: ['DOUBLE', -2.5e-10], ch: ['CHAR(10)', 'char'],
  vc: ['VARCHAR(100)', 'h\u00e9llo \u{1f600}'], tx: ['TEXT', "te'xt\\\n"], lt: ['LONGTEXT', ''],
  bl: ['BLOB', Buffer.from([...Array(256).keys()])], vb: ['VARBINARY(20)', Buffer.from([0, 1])],
  en: ["ENUM('x','y')", 'y'], se: ["SET('p','q')", 'p,q'], bt: ['BIT(8)', Buffer.from([165])],
  d: ['DATE', '2024-02-29'], dtm: ['DATETIME(6)', '2024-02-29 23:59:59.123456'],
  ts: ['TIMESTAMP(6) NULL', '2000-01-01 00:00:00.000001'], t: ['TIME(6)', '-838:01:00.123456'],
  y: ['YEAR', 2024],
};

async function types(connection, method) {
  const names = Object.keys(columns);
  await connection.query('DROP TABLE IF EXISTS node_types');
  const list = names.map((name) => `${name} ${columns[name][0]}`).join(', ');
  await connection.query(`CREATE TABLE node_types (id INT NOT NULL PRIMARY KEY, ${list})`);
  const places = names.map(() => '?').join(', ');
  const insert = `INSERT INTO node_types VALUES (?, ${places})`;
  await connection[method](insert, [1, ...names.map((name) => columns[name][1])]);
  await connection[method](insert, [2, ...names.map(() => null)]);
  const select = `SELECT ${names.join(', ')} FROM node_types WHERE id > ? ORDER BY id`;
  const result = await connection[method](select, [0]);
  const rows = Array.isArray(result[0]) ? result[0] : result;
  assert.equal(rows.length, 2);
  for (const name of names) {
    assert.deepEqual(rows[0][name], columns[name][1], name);
    assert.equal(rows[1][name], null, name);
  }
}

async function errors(connection, method) {
  await connection.query('DROP TABLE IF EXISTS node_keyed');
  await connection.query('CREATE TABLE node_keyed (id INT NOT NULL PRIMARY KEY)');
  await connection.query('INSERT INTO node_keyed VALUES (1)');
  const expected = [
    ['INSERT INTO node_keyed VALUES (1)', 1062, '23000'],
    ['SELECT * FROM missing', 1146, '42S02'],
    ['SELECT nothing FROM node_keyed', 1054, '42S22'],
    ['SELEC 1', 1064, '42000'],
  ];
  for (const [statement, number, state] of expected) {
    const error = await connection[method](statement).then(() => null, (error) => error);
    assert.ok(error, `no error: ${statement}`);
    assert.deepEqual([error.errno, error.sqlState], [number, state], statement);
  }
}

async function transactions(connection) {
  await connection.query('DROP TABLE IF EXISTS node_moved');
  await connection.query('CREATE TABLE node_moved (id INT NOT NULL PRIMARY KEY)');
  const count = async () => {
    const result = await connection.query('SELECT COUNT(*) AS n FROM node_moved');
    return Number((Array.isArray(result[0]) ? result[0] : result)[0].n);
  };
  await connection.beginTransaction();
  await connection.query('INSERT INTO node_moved VALUES (1)');
  await connection.rollback();
  assert.equal(await count(), 0);
  await connection.beginTransaction();
  await connection.query('INSERT INTO node_moved VALUES (1)');
  await connection.query('SAVEPOINT s');
  await connection.query('INSERT INTO node_moved VALUES (2)');
  await connection.query('ROLLBACK TO SAVEPOINT s');
  await connection.commit();
  assert.equal(await count(), 1);
}

async function large(connection, method) {
  await connection.query('DROP TABLE IF EXISTS node_large');
  await connection.query('CREATE TABLE node_large (id INT NOT NULL PRIMARY KEY, b LONGBLOB)');
  const value = Buffer.alloc(17 * 1024 * 1024, '0123456789abcdef');
  await connection[method]('INSERT INTO node_large VALUES (?, ?)', [1, value]);
  const result = await connection[method]('SELECT b FROM node_large WHERE id = ?', [1]);
  const rows = Array.isArray(result[0]) ? result[0] : result;
  assert.ok(rows[0].b.equals(value), '17 MiB came back changed');
}

async function login(connect, close) {
  for (const method of methods.filter((method) => method !== 'ed25519')) {
    for (const ssl of tls ? [undefined, { rejectUnauthorized: false }] : [undefined]) {
      const connection = await connect({ ...base, user: method, password: 'pw', ssl });
      const [[user]] = await connection.query('SELECT CURRENT_USER() AS name');
      assert.equal(user.name.split('@')[0], method);
      const [[cipher]] = await connection.query("SHOW STATUS LIKE 'Ssl_cipher'");
      assert.equal(cipher.Value !== '', ssl !== undefined, 'TLS is as was asked');
      await close(connection);
    }
  }
  const error = await connect({ ...base, user: 'native', password: 'wrong' }).then(
    () => null, (error) => error);
  assert.equal(error?.errno, 1045);
}

const options = { ...base, supportBigNumbers: true, bigNumberStrings: true, dateStrings: true };
await check('mysql2', 'login', () => login(mysql2.createConnection, (c) => c.end()));
for (const method of ['query', 'execute']) {
  const name = method === 'query' ? 'mysql2' : 'mysql2 binary';
  const run = (work) => async () => {
    const connection = await mysql2.createConnection(options);
    try {
      await work(connection, method);
    } finally {
      await connection.end();
    }
  };
  await check(name, 'types', run(types));
  await check(name, 'errors', run(errors));
  await check(name, 'transactions', run(transactions));
  await check(name, 'large row', run(large));
}
await check('mysql2', 'pool of 200 queries', async () => {
  const pool = mysql2.createPool({ ...base, connectionLimit: 8 });
  const all = [...Array(200).keys()].map((number) => pool.query('SELECT ? AS n', [number]));
  const sum = (await Promise.all(all)).reduce((sum, [rows]) => sum + Number(rows[0].n), 0);
  assert.equal(sum, 19900);
  await pool.end();
});
await check('mysql2', 'reconnect', async () => {
  const victim = await mysql2.createConnection(base);
  victim.on('error', () => {});
  const killer = await mysql2.createConnection(base);
  await killer.query(`KILL ${victim.threadId}`);
  await assert.rejects(victim.query('SELECT 1'));
  const again = await mysql2.createConnection(base);
  assert.equal((await again.query('SELECT 1 AS n'))[0][0].n, 1);
  await Promise.all([killer.end(), again.end()]);
});
await check('mariadb', 'batch', async () => {
  const connection = await mariadb.createConnection({ ...base });
  await connection.query('DROP TABLE IF EXISTS node_batch');
  await connection.query('CREATE TABLE node_batch (a INT, b VARCHAR(20))');
  const rows = [...Array(500).keys()].map((number) => [number, `x${number}`]);
  await connection.batch('INSERT INTO node_batch VALUES (?, ?)', rows);
  const found = await connection.query('SELECT COUNT(*) AS n FROM node_batch');
  assert.equal(Number(found[0].n), 500);
  await connection.end();
});
process.exit(failures ? 1 : 0);
