# Programs with several processes, and with several ranks: each process that uses the GPU writes a file.
framework_test(torch_processes test_processes.py TIMEOUT 900)
framework_test(torch_parallel test_parallel.py TIMEOUT 900)
