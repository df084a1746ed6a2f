<?php
$user = unserialize(base64_decode($_COOKIE["user"]));
