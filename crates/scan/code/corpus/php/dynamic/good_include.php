<?php
$page = "home";
include __DIR__ . "/pages/home.php";
