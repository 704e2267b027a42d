<?php
// What each request of WordPress reads first: Debian's program, our database and our content.
// `PAGES_ROOT` has links to the program's files beside a `wp-config.php` of ours.
define('ABSPATH', getenv('PAGES_ROOT') . '/');
define('WP_CONTENT_DIR', getenv('PAGES_ROOT') . '/wp-content');
define('DB_NAME', 'wordpress');
define('DB_USER', 'pages');
define('DB_PASSWORD', 'pw');
define('DB_HOST', '127.0.0.1:' . getenv('PAGES_PORT'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
// Nothing is fetched from outside, nothing runs beside the walk, and each mistake is logged.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', false);
define('WP_DEBUG_LOG', getenv('PAGES_ROOT') . '/debug.log');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $use) {
    define($use . '_KEY', 'key of the walk ' . $use);
    define($use . '_SALT', 'salt of the walk ' . $use);
}
