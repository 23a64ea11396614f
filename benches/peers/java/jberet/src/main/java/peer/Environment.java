package peer;

import io.agroal.api.AgroalDataSource;
import io.agroal.api.configuration.supplier.AgroalDataSourceConfigurationSupplier;
import io.agroal.narayana.NarayanaTransactionIntegration;
import jakarta.transaction.TransactionManager;
import java.sql.SQLException;
import java.util.Properties;
import org.jberet.repository.JdbcRepository;
import org.jberet.repository.JobRepository;
import org.jberet.se.BatchSEEnvironment;
import org.jberet.spi.ArtifactFactory;
import org.jberet.spi.BatchEnvironment;
import org.jberet.spi.JobTask;
import org.jberet.spi.JobXmlResolver;

/**
 * JBeret's environment for Java SE, but with transactions. The transaction manager of that environment does nothing, so the
 * rows of a chunk and its checkpoint would be committed one after the other.
 */
final class Environment implements BatchEnvironment {
    final AgroalDataSource database;
    private final BatchSEEnvironment standard = new BatchSEEnvironment();
    private final TransactionManager transactions = com.arjuna.ats.jta.TransactionManager.transactionManager();
    private final JobRepository repository;

    Environment(String url) throws SQLException {
        NarayanaTransactionIntegration integration = new NarayanaTransactionIntegration(
                transactions, new com.arjuna.ats.internal.jta.transaction.arjunacore.TransactionSynchronizationRegistryImple());
        database = AgroalDataSource.from(new AgroalDataSourceConfigurationSupplier()
                .connectionPoolConfiguration(pool -> pool
                        .maxSize(url.startsWith("jdbc:sqlite:") ? 2 : 4)
                        .transactionIntegration(integration)
                        .connectionFactoryConfiguration(connection -> connection.jdbcUrl(url))));
        Properties properties = new Properties();
        if (url.startsWith("jdbc:sqlite:")) {
            properties.setProperty("ddl-file", "sql/sqlite.ddl");
        }
        // Creates its tables if they are missing.
        repository = new JdbcRepository(database, properties);
    }

    @Override
    public TransactionManager getTransactionManager() {
        return transactions;
    }

    @Override
    public JobRepository getJobRepository() {
        return repository;
    }

    @Override
    public ClassLoader getClassLoader() {
        return standard.getClassLoader();
    }

    @Override
    public ArtifactFactory getArtifactFactory() {
        return standard.getArtifactFactory();
    }

    @Override
    public void submitTask(JobTask task) {
        standard.submitTask(task);
    }

    @Override
    public JobXmlResolver getJobXmlResolver() {
        return standard.getJobXmlResolver();
    }

    @Override
    public Properties getBatchConfigurationProperties() {
        return standard.getBatchConfigurationProperties();
    }

    @Override
    public String getApplicationName() {
        return standard.getApplicationName();
    }
}
