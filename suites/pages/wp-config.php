<?php
// Everything is defined in `wordpress.php`, which PHP reads before each request.
$table_prefix = 'wp_';
require_once ABSPATH . 'wp-settings.php';
