<?php
$user = json_decode(base64_decode($_COOKIE["user"]));
