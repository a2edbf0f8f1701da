# Programs with several processes, and with several ranks: each process that uses the GPU writes a file.
framework_test(torch_processes test_processes.py TIMEOUT 900)
framework_test(torch_parallel test_parallel.py TIMEOUT 900)
# Jobs in which a rank runs out of memory, and what the view of the job says and predicts.
framework_test(torch_failed_jobs test_failed_jobs.py TIMEOUT 600)
framework_test(torch_job_predictions test_job_predictions.py TIMEOUT 600)
