<?php
$page = $_GET["page"];
include $page . ".php";
